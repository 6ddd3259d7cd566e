import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The client that `pocketmq behave --grpc` runs: Java. It does what grpc_python_client.py does. */
public class BehaveGrpcClient {
    private static final int INTERVAL_MS = 20;
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final Map<String, Integer> SEEN = new ConcurrentHashMap<>();
    private static volatile boolean isEnded;

    public static void main(String[] args) throws Exception {
        String topic = System.getenv("BEHAVE_TOPIC");
        String role = System.getenv("BEHAVE_ROLE");
        ClientConfiguration conf = ClientConfiguration.newBuilder()
            .setEndpoints(System.getenv("ROCKETMQ_GRPC_ENDPOINT")).enableSsl(false).build();
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
        PushConsumer consumer = role.equals("producer") ? null : PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(conf).setConsumerGroup(System.getenv("BEHAVE_GROUP"))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .setMessageListener(BehaveGrpcClient::consume).build();
        Producer producer = null;
        try {
            if (role.equals("producer") || role.equals("both")) {
                producer = PROVIDER.newProducerBuilder().setClientConfiguration(conf).setTopics(topic).build();
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
                producer.close();
            }
            if (consumer != null) {
                consumer.close();
            }
            closed.countDown();
        }
    }

    private static ConsumeResult consume(MessageView message) {
        String body = StandardCharsets.UTF_8.decode(message.getBody()).toString();
        System.out.println("GOT " + body + " " + message.getDeliveryAttempt());
        int at = body.indexOf(" fails ");
        int deliveries = SEEN.merge(body, 1, Integer::sum);
        boolean fails = at >= 0 && deliveries <= Integer.parseInt(body.substring(at + 7));
        return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    private static void send(Producer producer, String topic) throws InterruptedException {
        for (int number = 0; !isEnded; number++) {
            byte[] body = ("message " + number).getBytes(StandardCharsets.UTF_8);
            try {
                producer.send(PROVIDER.newMessageBuilder().setTopic(topic).setBody(body).build());
                System.out.println("SENT " + number);
            } catch (Exception failure) {
                System.out.println("FAILED " + number + " " + String.valueOf(failure.getMessage()).split("\n")[0]);
            }
            Thread.sleep(INTERVAL_MS);
        }
    }
}
