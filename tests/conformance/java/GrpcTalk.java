import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * A gRPC client before the proxy: sends ten messages, receives and acknowledges them one by one (m3 only after it was
 * given more time), then has them pushed to another group, which refuses m5 once. Argument: the topic.
 */
public class GrpcTalk {
    public static void main(String[] args) throws Exception {
        String topic = args[0];
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        ClientConfiguration conf = ClientConfiguration.newBuilder()
            .setEndpoints("127.0.0.1:8081").enableSsl(false).setRequestTimeout(Duration.ofSeconds(20)).build();
        Map<String, FilterExpression> all = Collections.singletonMap(topic, new FilterExpression("*"));
        Producer producer = provider.newProducerBuilder().setClientConfiguration(conf).setTopics(topic).build();
        for (int i = 0; i < 10; i++) {
            producer.send(provider.newMessageBuilder().setTopic(topic).setTag("A").setBody(("m" + i).getBytes()).build());
        }
        System.out.println("SENT");
        SimpleConsumer simple = provider.newSimpleConsumerBuilder().setClientConfiguration(conf)
            .setConsumerGroup("grpc_simple").setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(all).build();
        Set<String> acknowledged = new TreeSet<>();
        for (long end = System.currentTimeMillis() + 90000; acknowledged.size() < 10 && System.currentTimeMillis() < end; ) {
            for (MessageView message : simple.receive(16, Duration.ofSeconds(30))) {
                if (body(message).equals("m3") && message.getDeliveryAttempt() == 1) {
                    simple.changeInvisibleDuration(message, Duration.ofSeconds(10));
                    continue;
                }
                simple.ack(message);
                acknowledged.add(body(message) + "/" + message.getDeliveryAttempt());
            }
        }
        System.out.println("ACKNOWLEDGED " + acknowledged);
        simple.close();
        Set<String> pushed = ConcurrentHashMap.newKeySet();
        PushConsumer push = provider.newPushConsumerBuilder().setClientConfiguration(conf)
            .setConsumerGroup("grpc_push").setSubscriptionExpressions(all).setMessageListener(message -> {
                pushed.add(body(message) + "/" + message.getDeliveryAttempt());
                boolean isRefused = body(message).equals("m5") && message.getDeliveryAttempt() == 1;
                return isRefused ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build();
        for (int i = 0; i < 900 && pushed.size() < 11; i++) {
            Thread.sleep(100);
        }
        System.out.println("PUSHED " + new TreeSet<>(pushed));
        push.close();
        producer.close();
        System.exit(0);
    }

    private static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }
}
