import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** The client that `pocketmq behave` runs: Java. It does what python_client.py does. */
public class BehaveClient {
    private static final int INTERVAL_MS = 20;
    private static volatile boolean isEnded;

    public static void main(String[] args) throws Exception {
        String topic = System.getenv("BEHAVE_TOPIC");
        String group = System.getenv("BEHAVE_GROUP");
        String role = System.getenv("BEHAVE_ROLE");
        CountDownLatch closed = new CountDownLatch(1);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            isEnded = true;
            main.interrupt();
            try {
                closed.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        DefaultMQPushConsumer consumer = role.equals("producer") ? null : consumer(topic, group, role.equals("ordered"));
        DefaultMQProducer producer = null;
        try {
            if (role.equals("producer") || role.equals("both")) {
                producer = new DefaultMQProducer(group + "_producer");
                producer.start();
                send(producer, topic);
            } else {
                while (!isEnded) {
                    Thread.sleep(1000);
                }
            }
        } catch (InterruptedException interrupted) {
            // SIGTERM
        } finally {
            if (producer != null) {
                producer.shutdown();
            }
            if (consumer != null) {
                consumer.shutdown();
            }
            closed.countDown();
        }
    }

    private static DefaultMQPushConsumer consumer(String topic, String group, boolean ordered) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        if (ordered) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                print(messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                print(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        return consumer;
    }

    private static void send(DefaultMQProducer producer, String topic) throws InterruptedException {
        for (int number = 0; !isEnded; number++) {
            try {
                SendResult result = producer.send(new Message(topic, ("message " + number).getBytes(StandardCharsets.UTF_8)));
                System.out.println("SENT " + number + " " + result.getSendStatus());
            } catch (InterruptedException interrupted) {
                throw interrupted;
            } catch (Exception failure) {
                System.out.println("FAILED " + number + " " + String.valueOf(failure.getMessage()).split("\n")[0]);
            }
            Thread.sleep(INTERVAL_MS);
        }
    }

    private static void print(List<MessageExt> messages) {
        for (MessageExt message : messages) {
            System.out.println("GOT " + message.getQueueId() + " " + message.getQueueOffset());
        }
    }
}
