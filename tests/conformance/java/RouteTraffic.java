import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends and consumes through several name servers side by side: RouteTraffic COUNT GROUP NAMESRV,NAMESRV,... TOPIC,TOPIC,...
 *
 * Through each name server COUNT messages go to each topic ("SENT namesrv topic broker queueId offset body"), and a consumer
 * group of its own, GROUP_1, GROUP_2, ..., reads all topics ("GOT ..." alike). Ends when every consumer has everything.
 */
public class RouteTraffic {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        String[] nameServers = args[2].split(",");
        String[] topics = args[3].split(",");
        CountDownLatch missing = new CountDownLatch(nameServers.length * nameServers.length * topics.length * count);
        List<Thread> works = new ArrayList<>();
        List<DefaultMQProducer> producers = new ArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < nameServers.length; i++) {
            String group = args[1] + "_" + (i + 1);
            DefaultMQProducer producer = producer(group, nameServers[i]);
            producers.add(producer);
            DefaultMQPushConsumer consumer = consumer(group, nameServers[i], topics, missing);
            consumers.add(consumer);
            Thread work = new Thread(() -> {
                try {
                    producer.start();
                    send(producer, topics, count);
                    consumer.start();
                } catch (Throwable failure) {
                    failure.printStackTrace(System.out);
                    System.exit(1);
                }
            });
            work.start();
            works.add(work);
        }
        for (Thread work : works) {
            work.join();
        }
        boolean isComplete = missing.await(60, TimeUnit.SECONDS);
        TimeUnit.SECONDS.sleep(1); // what comes twice may still come
        consumers.forEach(consumer -> consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset());
        TimeUnit.MILLISECONDS.sleep(300); // offsets go one-way: one that is lost goes again with the shutdown
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        producers.forEach(DefaultMQProducer::shutdown);
        System.out.println(isComplete ? "COMPLETE" : "MISSING " + missing.getCount());
        System.exit(isComplete ? 0 : 1);
    }

    private static DefaultMQProducer producer(String group, String nameServer) {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName(group);
        producer.setSendMsgTimeout(10_000);
        return producer;
    }

    private static void send(DefaultMQProducer producer, String[] topics, int count) throws Exception {
        for (String topic : topics) {
            for (int i = 0; i < count; i++) {
                String body = producer.getProducerGroup() + "-" + topic + "-" + i;
                SendResult result = producer.send(new Message(topic, body.getBytes()));
                say("SENT", producer.getNamesrvAddr(), topic, result.getMessageQueue().getBrokerName(),
                    result.getMessageQueue().getQueueId(), result.getQueueOffset(), body);
            }
        }
    }

    private static DefaultMQPushConsumer consumer(String group, String nameServer, String[] topics, CountDownLatch missing)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        // Not the producer's: were its regular heartbeat under way just now, this consumer's first would come 30 s later.
        consumer.setInstanceName(group + "-consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        for (String topic : topics) {
            consumer.subscribe(topic, "*");
        }
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                say("GOT", nameServer, message.getTopic(), context.getMessageQueue().getBrokerName(), message.getQueueId(),
                    message.getQueueOffset(), new String(message.getBody()));
                missing.countDown();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        return consumer;
    }

    private static synchronized void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        System.out.println(line);
    }
}
