import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * Push consumers of the official gRPC client. Arguments: endpoint, then one of
 *
 *   retries TOPIC GROUP    one message is sent, and every delivery of it fails: prints "TRIED attempt" until it is killed
 *   order TOPIC GROUP      twenty messages of two message groups; m3 fails once: prints the bodies of each in order
 *   filters TOPIC          two push consumers, one by tag and one by SQL: prints what each got
 *   member TOPIC GROUP     prints "GOT body attempt tag keys a" for each message until it is killed
 *   send TOPIC COUNT       sends so many messages with tag, keys and a property
 */
public class GrpcConsumers {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static ClientConfiguration conf;

    public static void main(String[] args) throws Exception {
        conf = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(20)).build();
        switch (args[1]) {
            case "retries": retries(args[2], args[3]); break;
            case "order": order(args[2], args[3]); break;
            case "filters": filters(args[2]); break;
            case "send": sendMany(args[2], Integer.parseInt(args[3])); break;
            default: member(args[2], args[3]);
        }
        System.out.println("DONE");
        System.exit(0);
    }

    private static void retries(String topic, String group) throws Exception {
        push(group, topic, new FilterExpression("*"), message -> {
            System.out.println("TRIED " + message.getDeliveryAttempt());
            return ConsumeResult.FAILURE;
        });
        send(topic, null, topic.startsWith("Fifo") ? "one" : null, "bad");
        System.out.println("READY");
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void order(String topic, String group) throws Exception {
        Map<String, List<String>> seen = new ConcurrentHashMap<>();
        for (int i = 0; i < 20; i++) {
            send(topic, null, "group" + i % 2, "m" + i);
        }
        PushConsumer consumer = push(group, topic, new FilterExpression("*"), message -> {
            String name = message.getMessageGroup().orElse("none");
            seen.computeIfAbsent(name, key -> new CopyOnWriteArrayList<>()).add(body(message) + "/" + message.getDeliveryAttempt());
            boolean isRefused = body(message).equals("m3") && message.getDeliveryAttempt() == 1;
            return isRefused ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
        });
        for (int i = 0; i < 600 && count(seen) < 21; i++) {
            Thread.sleep(100);
        }
        for (String name : new TreeSet<>(seen.keySet())) {
            System.out.println("ORDER " + name + " " + seen.get(name));
        }
        consumer.close();
    }

    private static int count(Map<String, List<String>> seen) {
        return seen.values().stream().mapToInt(List::size).sum();
    }

    private static void filters(String topic) throws Exception {
        TreeSet<String> byTag = new TreeSet<>();
        TreeSet<String> bySql = new TreeSet<>();
        PushConsumer tags = push("by_tag", topic, new FilterExpression("B || C"), message -> add(byTag, message));
        FilterExpression sql = new FilterExpression("a > 5", FilterExpressionType.SQL92);
        PushConsumer numbers = push("by_sql", topic, sql, message -> add(bySql, message));
        for (int i = 0; i < 10; i++) {
            send(topic, "ABC".substring(i % 3, i % 3 + 1), null, "m" + i);
        }
        for (int i = 0; i < 300 && byTag.size() + bySql.size() < 10; i++) {
            Thread.sleep(100);
        }
        System.out.println("TAG " + byTag);
        System.out.println("SQL " + bySql);
        tags.close();
        numbers.close();
    }

    private static ConsumeResult add(TreeSet<String> found, MessageView message) {
        synchronized (found) {
            found.add(body(message));
        }
        return ConsumeResult.SUCCESS;
    }

    private static void member(String topic, String group) throws Exception {
        push(group, topic, new FilterExpression("*"), message -> {
            List<String> words = new ArrayList<>();
            words.add(body(message));
            words.add(String.valueOf(message.getDeliveryAttempt()));
            words.add(message.getTag().orElse("-"));
            words.add(String.join(",", new TreeSet<>(message.getKeys())));
            words.add(message.getProperties().getOrDefault("a", "-"));
            System.out.println("GOT " + String.join(" ", words));
            return ConsumeResult.SUCCESS;
        });
        System.out.println("READY");
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void sendMany(String topic, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            send(topic, "A", null, "g" + i);
        }
    }

    private static PushConsumer push(
        String group, String topic, FilterExpression filter, org.apache.rocketmq.client.apis.consumer.MessageListener listener
    ) throws Exception {
        return PROVIDER.newPushConsumerBuilder().setClientConfiguration(conf).setConsumerGroup(group)
            .setSubscriptionExpressions(Collections.singletonMap(topic, filter)).setMessageListener(listener).build();
    }

    private static Producer producer;

    private static void send(String topic, String tag, String messageGroup, String body) throws Exception {
        if (producer == null) {
            producer = PROVIDER.newProducerBuilder().setClientConfiguration(conf).setTopics(topic).build();
        }
        MessageBuilder builder = PROVIDER.newMessageBuilder().setTopic(topic).setKeys("k" + body)
            .addProperty("a", body.replaceAll("[^0-9]", "0")).setBody(body.getBytes(StandardCharsets.UTF_8));
        if (tag != null) {
            builder.setTag(tag);
        }
        if (messageGroup != null) {
            builder.setMessageGroup(messageGroup);
        }
        producer.send(builder.build());
    }

    private static String body(MessageView message) {
        byte[] bytes = new byte[message.getBody().remaining()];
        message.getBody().duplicate().get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
