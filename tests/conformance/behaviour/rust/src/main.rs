//! The client that `pocketmq behave` runs: Rust. It does what python_client.py does.
#![recursion_limit = "512"]

use std::env::var;
use std::sync::Arc;
use std::time::Duration;

use rocketmq_client_rust::{
    ClientResult, ClientRuntime, ClientRuntimeConfig, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext, ConsumeOrderlyStatus, DefaultMQProducer, DefaultMQPushConsumer, MQPushConsumer,
    MessageListenerConcurrently, MessageListenerOrderly,
};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_single::Message;
use rocketmq_runtime::{RuntimeConfig, RuntimeOwner};
use tokio::signal::unix::{signal, SignalKind};

const INTERVAL: Duration = Duration::from_millis(20);

struct Printed;

impl Printed {
    fn print(messages: &[&MessageExt]) {
        for message in messages {
            println!("GOT {} {}", message.queue_id(), message.queue_offset());
        }
    }
}

impl MessageListenerConcurrently for Printed {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _context: &ConsumeConcurrentlyContext,
    ) -> ClientResult<ConsumeConcurrentlyStatus> {
        Self::print(messages);
        Ok(ConsumeConcurrentlyStatus::ConsumeSuccess)
    }
}

impl MessageListenerOrderly for Printed {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        context: &mut ConsumeOrderlyContext,
    ) -> ClientResult<ConsumeOrderlyStatus> {
        context.set_auto_commit(true);
        Self::print(messages);
        Ok(ConsumeOrderlyStatus::Success)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (topic, group, role) = (var("BEHAVE_TOPIC")?, var("BEHAVE_GROUP")?, var("BEHAVE_ROLE")?);
    let servers = var("NAMESRV_ADDR")?;
    let mut ended = signal(SignalKind::terminate())?;
    let owner = RuntimeOwner::plan(RuntimeConfig::default())?.build()?;
    let telemetry = rocketmq_observability::install_global(&Default::default())?;
    let runtime: Arc<ClientRuntime> = ClientRuntime::try_new(
        owner.root_context().component("client"),
        ClientRuntimeConfig::default(),
        telemetry.handle(),
    )?;
    let mut consumer = None;
    if role != "producer" {
        let mut one = DefaultMQPushConsumer::builder(runtime.clone())
            .consumer_group(group.clone())
            .name_server_addr(servers.clone())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .build();
        one.subscribe(topic.as_str(), "*").await?;
        if role == "ordered" {
            one.register_message_listener_orderly(Printed);
        } else {
            one.register_message_listener_concurrently(Printed);
        }
        one.start().await?;
        consumer = Some(one);
    }
    if role == "producer" || role == "both" {
        let mut producer = DefaultMQProducer::builder(runtime.clone())
            .producer_group(format!("{group}_producer"))
            .name_server_addr(servers)
            .build();
        producer.start().await?;
        let mut number = 0;
        loop {
            let body = format!("message {number}");
            let message = Message::builder().topic(topic.as_str()).body_slice(body.as_bytes()).build_unchecked();
            match producer.send(message).await {
                Ok(_) => println!("SENT {number}"),
                Err(error) => println!("FAILED {number} {}", error.to_string().lines().next().unwrap_or("")),
            }
            number += 1;
            tokio::select! {
                _ = tokio::time::sleep(INTERVAL) => {}
                _ = ended.recv() => break,
            }
        }
        producer.shutdown().await;
    } else {
        ended.recv().await;
    }
    if let Some(mut one) = consumer {
        one.shutdown().await;
    }
    std::process::exit(0)
}
