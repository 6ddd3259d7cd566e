import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Every kind of message a store holds, on demand. A line on stdin is one job, "DONE line" its end; clients are new for each:
 *
 *   write LABEL BULK   plain (BULK of them), keyed and tagged, a batch, one that waits for the longest delay
 *   read LABEL COUNT   group Readers on topic Keyed until COUNT messages came; those with a key that ends in "-0" are given back
 *                      once and come again by way of the retry topic
 *   later LABEL        one message for the second delay level
 *
 * "SENT topic queueId offset offsetMsgId keys body", "GOT topic queueId offset reconsumeTimes body".
 */
public class StoreTraffic {
    private static final int LATER = 2;
    private static final int LONGEST = 4;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            try {
                switch (words[0]) {
                    case "write": write(words[1], Integer.parseInt(words[2])); break;
                    case "read": read(words[1], Integer.parseInt(words[2])); break;
                    default: later(words[1]);
                }
                System.out.println("DONE " + line);
            } catch (Throwable failure) {
                failure.printStackTrace(System.out);
                System.out.println("FAILED " + line);
            }
        }
        System.exit(0);
    }

    private static DefaultMQProducer producer(String label) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("Writers");
        producer.setInstanceName("writer-" + label + System.nanoTime());
        producer.setSendMsgTimeout(10_000);
        producer.start();
        return producer;
    }

    private static void write(String label, int bulk) throws Exception {
        DefaultMQProducer producer = producer(label);
        byte[] padding = new byte[500];
        java.util.Arrays.fill(padding, (byte) 'p');
        String filler = new String(padding, StandardCharsets.US_ASCII);
        for (int i = 0; i < bulk; i++) {
            send(producer, new Message("Plain", bytes(label + "-plain-" + i + "-" + filler)));
        }
        for (int i = 0; i < 6; i++) {
            send(producer, new Message("Keyed", i % 2 == 0 ? "TagA" : "TagB", label + "-" + i + " shared", bytes(label + "-keyed-" + i)));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            batch.add(new Message("Batch", "TagC", label + "-batch-" + i, bytes(label + "-batch-" + i)));
        }
        tell(producer.send(batch), batch.get(0), label + "-batch");
        Message waiting = new Message("Waiting", bytes(label + "-waiting"));
        waiting.setDelayTimeLevel(LONGEST);
        send(producer, waiting);
        producer.shutdown();
    }

    private static void later(String label) throws Exception {
        DefaultMQProducer producer = producer(label);
        Message message = new Message("Later", bytes(label + "-later"));
        message.setDelayTimeLevel(LATER);
        send(producer, message);
        producer.shutdown();
    }

    private static void send(DefaultMQProducer producer, Message message) throws Exception {
        tell(producer.send(message), message, new String(message.getBody()));
    }

    private static void tell(SendResult result, Message message, String body) {
        String keys = message.getKeys() == null ? "" : message.getKeys().replace(' ', ',');
        System.out.println("SENT " + message.getTopic() + " " + result.getMessageQueue().getQueueId() + " " + result.getQueueOffset()
            + " " + result.getOffsetMsgId() + " [" + keys + "] " + body);
    }

    private static void read(String label, int count) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("Readers");
        consumer.setInstanceName("reader-" + label);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.subscribe("Keyed", "TagA || TagB");
        CountDownLatch missing = new CountDownLatch(count);
        Set<String> givenBack = ConcurrentHashMap.newKeySet();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            System.out.println("GOT " + context.getMessageQueue().getTopic() + " " + message.getQueueId() + " " + message.getQueueOffset() + " "
                + message.getReconsumeTimes() + " " + new String(message.getBody()));
            missing.countDown();
            boolean isFirstKey = message.getKeys().contains("-0 ");
            return isFirstKey && message.getReconsumeTimes() == 0 && givenBack.add(message.getKeys())
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        boolean isComplete = missing.await(40, TimeUnit.SECONDS);
        TimeUnit.MILLISECONDS.sleep(500); // what comes twice may still come
        consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
        TimeUnit.MILLISECONDS.sleep(200);
        consumer.shutdown();
        if (!isComplete) {
            throw new IllegalStateException(missing.getCount() + " messages did not come");
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
