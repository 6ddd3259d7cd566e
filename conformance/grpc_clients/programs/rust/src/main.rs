// The official Rust client: what `test_other_clients.py` expects of every client. Argument: endpoint.
// It has no push consumer, and cannot change invisible times.
use std::time::{Duration, Instant};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::MessageBuilder;
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};

fn option() -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(std::env::args().nth(1).expect("an endpoint"));
    option.set_enable_tls(false);
    option
}

fn of_topics(topics: Vec<&str>) -> ProducerOption {
    let mut option = ProducerOption::default();
    option.set_topics(topics);
    option
}

async fn send() {
    let mut producer = Producer::new(of_topics(vec!["NormalT", "FifoT"]), option()).unwrap();
    producer.start().await.unwrap();
    for number in 0..10 {
        let body = format!("m{number}");
        let message = MessageBuilder::builder()
            .set_topic("NormalT")
            .set_tag("A")
            .set_keys(vec![format!("k{body}")])
            .set_body(body.into_bytes())
            .build()
            .unwrap();
        producer.send(message).await.unwrap();
    }
    for number in 0..6 {
        let body = format!("f{number}").into_bytes();
        let message = MessageBuilder::fifo_message_builder("FifoT", body, "one").build().unwrap();
        producer.send(message).await.unwrap();
    }
    producer.shutdown().await.unwrap();
}

async fn send_in_transaction() {
    let checker = Box::new(|_, _| TransactionResolution::COMMIT);
    let mut producer =
        Producer::new_transaction_producer(of_topics(vec!["TransT"]), option(), checker).unwrap();
    producer.start().await.unwrap();
    let body = "committed".as_bytes().to_vec();
    let message = MessageBuilder::transaction_message_builder("TransT", body).build().unwrap();
    let transaction = producer.send_transaction_message(message).await.unwrap();
    transaction.commit().await.unwrap();
    producer.shutdown().await.unwrap();
}

// The bodies in the order of their arrival.
async fn receive(group: &str, topic: &str, count: usize) -> Vec<String> {
    let mut of_consumer = SimpleConsumerOption::default();
    of_consumer.set_topics(vec![topic]);
    of_consumer.set_consumer_group(group);
    let mut consumer = SimpleConsumer::new(of_consumer, option()).unwrap();
    consumer.start().await.unwrap();
    let mut bodies = Vec::new();
    let end = Instant::now() + Duration::from_secs(60);
    while bodies.len() < count && Instant::now() < end {
        let all = FilterExpression::new(FilterType::Tag, "*");
        for message in consumer.receive(topic.to_string(), &all).await.unwrap() {
            consumer.ack(&message).await.unwrap();
            bodies.push(String::from_utf8(message.body().to_vec()).unwrap());
        }
    }
    consumer.shutdown().await.unwrap();
    bodies
}

#[tokio::main]
async fn main() {
    send().await;
    send_in_transaction().await;
    let mut normal = receive("simple", "NormalT", 10).await;
    normal.sort();
    println!("NORMAL {}", normal.join(" "));
    println!("FIFO {}", receive("fifo", "FifoT", 6).await.join(" "));
    println!("TRANSACTION {}", receive("trans", "TransT", 1).await.join(" "));
    println!("DONE");
}
