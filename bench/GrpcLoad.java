import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * A load of gRPC calls: GrpcLoad ENDPOINT send|receive TOPIC WARM_SECONDS SECONDS WINDOW.
 *
 * send: WINDOW sends of 1 KiB under way at once. receive: receives 32 messages at a time and acknowledges each, with
 * WINDOW acks under way. Prints "begin" after the warming up, and "end COUNT" after SECONDS more.
 */
public class GrpcLoad {
    static final AtomicLong COUNT = new AtomicLong();
    static volatile boolean isOver;

    public static void main(String[] words) throws Exception {
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        ClientConfiguration configuration =
            ClientConfiguration.newBuilder().setEndpoints(words[0]).enableSsl(false).build();
        String topic = words[2];
        long warmMs = Long.parseLong(words[3]) * 1000;
        long measuredMs = Long.parseLong(words[4]) * 1000;
        int window = Integer.parseInt(words[5]);
        Thread load;
        if (words[1].equals("send")) {
            Producer producer =
                provider.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build();
            load = new Thread(() -> send(provider, producer, topic, window));
        } else {
            SimpleConsumer consumer = provider.newSimpleConsumerBuilder().setClientConfiguration(configuration)
                .setConsumerGroup("bench").setAwaitDuration(Duration.ofSeconds(5))
                .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).build();
            load = new Thread(() -> receive(consumer, window));
        }
        load.setDaemon(true);
        load.start();
        Thread.sleep(warmMs);
        long before = COUNT.get();
        System.out.println("begin");
        Thread.sleep(measuredMs);
        System.out.println("end " + (COUNT.get() - before));
        isOver = true;
        System.exit(0);
    }

    static void send(ClientServiceProvider provider, Producer producer, String topic, int window) {
        byte[] body = new byte[1024];
        Semaphore free = new Semaphore(window);
        while (!isOver) {
            free.acquireUninterruptibly();
            Message message = provider.newMessageBuilder().setTopic(topic).setBody(body).build();
            producer.sendAsync(message).whenComplete((receipt, error) -> {
                free.release();
                if (error == null) {
                    COUNT.incrementAndGet();
                }
            });
        }
    }

    static void receive(SimpleConsumer consumer, int window) {
        Semaphore free = new Semaphore(window);
        while (!isOver) {
            try {
                for (MessageView view : consumer.receive(32, Duration.ofSeconds(60))) {
                    free.acquireUninterruptibly();
                    consumer.ackAsync(view).whenComplete((nothing, error) -> {
                        free.release();
                        if (error == null) {
                            COUNT.incrementAndGet();
                        }
                    });
                }
            } catch (Exception error) {
                System.err.println(error);
            }
        }
    }
}
