import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Loads of messages of which no two are alike: each has a key, a tag, a trace context, a user and an amount of its own.
 * The official benchmark programs send one header over and over. It ends when it is killed.
 *
 *   send NAMESRV TOPIC THREADS BYTES LEVEL    one at a time in each thread; LEVEL 0: without a delay
 *   fill NAMESRV TOPIC THREADS BYTES          batches of 16
 *   read NAMESRV TOPIC GROUP HOW BROKER       HOW: concurrent, ordered, later (each message is sent back) or pop
 */
public class OwnMessages {
    private static final AtomicLong NUMBER = new AtomicLong();

    public static void main(String[] words) throws Exception {
        if (words[0].equals("send")) {
            send(words[1], words[2], Integer.parseInt(words[3]), body(words[4]), Integer.parseInt(words[5]));
        } else if (words[0].equals("fill")) {
            fill(words[1], words[2], Integer.parseInt(words[3]), body(words[4]));
        } else {
            read(words[1], words[2], words[3], words[4], words[5]);
        }
    }

    private static byte[] body(String size) {
        return "x".repeat(Integer.parseInt(size)).getBytes(StandardCharsets.US_ASCII);
    }

    private static Message message(String topic, byte[] body) {
        long number = NUMBER.incrementAndGet();
        ThreadLocalRandom random = ThreadLocalRandom.current();
        Message message = new Message(topic, "T" + number % 1000, "order-" + number, body);
        message.putUserProperty("traceparent", "00-" + hex(number) + hex(random.nextLong()) + "-" + hex(random.nextLong()) + "-01");
        message.putUserProperty("user", "u" + random.nextInt(1_000_000));
        message.putUserProperty("amount", Integer.toString(random.nextInt(100_000)));
        return message;
    }

    private static String hex(long number) {
        return Long.toHexString(number | Long.MIN_VALUE);
    }

    private interface Step {
        void run(DefaultMQProducer producer) throws Exception;
    }

    private static void repeat(String namesrv, int threads, Step step) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("own_messages");
        producer.setNamesrvAddr(namesrv);
        producer.start();
        for (int thread = 0; thread < threads; thread++) {
            new Thread(() -> {
                while (true) {
                    try {
                        step.run(producer);
                    } catch (Exception failure) {
                        System.out.println("failed: " + failure);
                    }
                }
            }).start();
        }
    }

    private static void send(String namesrv, String topic, int threads, byte[] body, int level) throws Exception {
        repeat(namesrv, threads, producer -> {
            Message message = message(topic, body);
            if (level > 0) {
                message.setDelayTimeLevel(level);
            }
            producer.send(message);
        });
    }

    private static void fill(String namesrv, String topic, int threads, byte[] body) throws Exception {
        repeat(namesrv, threads, producer -> {
            List<Message> batch = new ArrayList<>();
            while (batch.size() < 16) {
                batch.add(message(topic, body));
            }
            producer.send(batch);
        });
    }

    private static void read(String namesrv, String topic, String group, String how, String broker) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        if (how.equals("ordered")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
        } else {
            ConsumeConcurrentlyStatus status = how.equals("later")
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> status);
        }
        if (how.equals("pop")) {
            popMode(namesrv, broker, topic, group);
            consumer.setClientRebalance(false);
        }
        consumer.start();
        System.out.println("Consumer Started");
    }

    private static void popMode(String namesrv, String broker, String topic, String group) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(namesrv);
        admin.start();
        admin.setMessageRequestMode(broker, topic, group, MessageRequestMode.POP, 8, 3000);
        admin.shutdown();
    }
}
