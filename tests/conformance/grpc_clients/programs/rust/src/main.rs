// The official Rust client; the words and the lines of every language's program are listed in `clients.py`.
//
//     grpctalk ENDPOINT plain USER PASSWORD PREFIX STEP...
//
// Version 5.0.0 has no push consumer, no recall and no TLS, and cannot change invisible times.
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::error::ClientError;
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{Message, MessageBuilder};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};

type Said = Result<Vec<String>, ClientError>;

fn argument(number: usize) -> String {
    std::env::args().nth(number).expect("ENDPOINT plain USER PASSWORD PREFIX STEP...")
}

fn option() -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(argument(1));
    option.set_enable_tls(false);
    if argument(3) != "-" {
        option.set_access_key(argument(3));
        option.set_secret_key(argument(4));
    }
    option
}

fn name(word: &str) -> String {
    format!("{}_{word}", argument(5))
}

fn numbered(letter: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{letter}{number}")).collect()
}

fn of_topic(topic: &str) -> ProducerOption {
    let mut option = ProducerOption::default();
    option.set_topics(vec![topic]);
    option
}

async fn send(topic: &str, messages: Vec<impl Message>) -> Result<(), ClientError> {
    let mut producer = Producer::new(of_topic(topic), option())?;
    producer.start().await?;
    for message in messages {
        producer.send(message).await?;
    }
    producer.shutdown().await
}

fn normal(topic: &str, body: &str) -> impl Message {
    let builder = MessageBuilder::builder().set_topic(topic).set_tag("A").set_keys(vec![format!("k{body}")]);
    builder.set_body(body.as_bytes().to_vec()).build().unwrap()
}

// The bodies as they arrive.
async fn receive(topic: &str, group: &str, count: usize) -> Said {
    let mut of_consumer = SimpleConsumerOption::default();
    of_consumer.set_topics(vec![topic]);
    of_consumer.set_consumer_group(name(group));
    let mut consumer = SimpleConsumer::new(of_consumer, option())?;
    consumer.start().await?;
    let mut bodies = Vec::new();
    let end = Instant::now() + Duration::from_secs(100);
    while bodies.len() < count && Instant::now() < end {
        let all = FilterExpression::new(FilterType::Tag, "*");
        for message in consumer.receive(topic.to_string(), &all).await? {
            consumer.ack(&message).await?;
            bodies.push(String::from_utf8(message.body().to_vec()).unwrap());
        }
    }
    consumer.shutdown().await?;
    Ok(bodies)
}

async fn step_send() -> Said {
    let topic = name("Normal");
    let bodies = numbered("m", 10);
    send(&topic, bodies.iter().map(|body| normal(&topic, body)).collect()).await?;
    Ok(bodies)
}

async fn step_simple() -> Said {
    let mut bodies = receive(&name("Normal"), "simple", 10).await?;
    bodies.sort();
    Ok(bodies)
}

async fn step_fifo() -> Said {
    let topic = name("Fifo");
    let in_group = |body: &String| {
        MessageBuilder::fifo_message_builder(&topic, body.as_bytes().to_vec(), "one").build().unwrap()
    };
    send(&topic, numbered("f", 6).iter().map(in_group).collect()).await?;
    receive(&topic, "fifo", 6).await
}

async fn step_transaction(is_forgotten: bool) -> Said {
    let topic = name("Trans");
    let half = |body: &str| MessageBuilder::transaction_message_builder(&topic, body.as_bytes().to_vec()).build();
    let checker = Box::new(|_, _| TransactionResolution::COMMIT);
    let mut producer = Producer::new_transaction_producer(of_topic(&topic), option(), checker)?;
    producer.start().await?;
    if is_forgotten {
        producer.send_transaction_message(half("forgotten").unwrap()).await?;
    } else {
        producer.send_transaction_message(half("dropped").unwrap()).await?.rollback().await?;
        producer.send_transaction_message(half("committed").unwrap()).await?.commit().await?;
    }
    let bodies = receive(&topic, "trans", 1).await?;
    producer.shutdown().await?;
    Ok(bodies)
}

async fn step_delay() -> Said {
    let topic = name("Delay");
    let start = Instant::now();
    let due = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 + 5;
    let message = MessageBuilder::delay_message_builder(&topic, b"d".to_vec(), due).build().unwrap();
    send(&topic, vec![message]).await?;
    let mut bodies = receive(&topic, "delay", 1).await?;
    let is_late = start.elapsed() > Duration::from_millis(2900);
    bodies.push(if is_late { "late" } else { "early" }.to_string());
    Ok(bodies)
}

#[tokio::main]
async fn main() {
    for step in std::env::args().skip(6) {
        let said = match step.as_str() {
            "send" => step_send().await,
            "simple" => step_simple().await,
            "fifo" => step_fifo().await,
            "transaction" => step_transaction(false).await,
            "check" => step_transaction(true).await,
            "delay" => step_delay().await,
            other => panic!("this client has no step {other}"),
        };
        match said {
            Ok(words) => println!("{} {}", step.to_uppercase(), words.join(" ")),
            Err(error) => {
                let text = format!("{error:?}");
                let words: Vec<&str> = text.split_whitespace().collect();
                println!("{} refused {}", step.to_uppercase(), words.join(" "));
            }
        }
    }
    println!("DONE");
}
