import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** The official Java client; the words and the lines of every language's program are listed in clients.py. */
public class Talk {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final long SECONDS = 60;
    private static ClientConfiguration conf;
    private static String prefix;

    public static void main(String[] args) throws Exception {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder().setEndpoints(args[0])
            .enableSsl(args[1].equals("tls")).setRequestTimeout(Duration.ofSeconds(20));
        if (!args[2].equals("-")) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(args[2], args[3]));
        }
        conf = builder.build();
        prefix = args[4] + "_";
        for (int i = 5; i < args.length; i++) {
            try {
                System.out.println(args[i].toUpperCase() + " " + String.join(" ", step(args[i])));
            } catch (Exception error) {
                System.out.println(args[i].toUpperCase() + " refused " + String.valueOf(error).replaceAll("\\s+", " "));
            }
        }
        System.out.println("DONE");
        System.exit(0);
    }

    private static List<String> step(String name) throws Exception {
        switch (name) {
            case "send":
                send("Normal", numbered("m", 10), message -> { });
                return numbered("m", 10);
            case "simple":
                return sorted(receive("Normal", "simple", 10, "m3"));
            case "push":
                return sorted(pushed("Normal", "push", 11, "m5", false, null));
            case "fifo":
                send("Fifo", numbered("f", 6), message -> message.setMessageGroup("one"));
                return receive("Fifo", "fifo", 6, "");
            case "order":
                send("Order", numbered("f", 6), message -> message.setMessageGroup("one"));
                return pushed("Order", "order", 7, "f3", false, null).stream()
                    .map(seen -> seen.split("/")[0]).collect(Collectors.toList());
            case "transaction":
                return transaction();
            case "check":
                try (Producer producer = producer("Trans")) {
                    producer.send(message("Trans", "forgotten").build(), producer.beginTransaction());
                    return receive("Trans", "trans", 1, "");
                }
            case "delay":
                return delay();
            case "recall":
                return recall();
            case "filters":
                return filters();
            case "dead":
                send("Bad", List.of("bad"), message -> { });
                return pushed("Bad", "bad", Integer.MAX_VALUE, "bad", true, "TRIED");
            case "deadfifo":
                send("BadFifo", List.of("bad"), message -> message.setMessageGroup("one"));
                return pushed("BadFifo", "badfifo", Integer.MAX_VALUE, "bad", true, "TRIED");
            default:
                return pushed("Normal", "member", Integer.MAX_VALUE, "", false, "GOT");
        }
    }

    private static List<String> transaction() throws Exception {
        try (Producer producer = producer("Trans")) {
            Transaction dropped = producer.beginTransaction();
            producer.send(message("Trans", "dropped").build(), dropped);
            dropped.rollback();
            Transaction kept = producer.beginTransaction();
            producer.send(message("Trans", "committed").build(), kept);
            kept.commit();
            return receive("Trans", "trans", 1, "");
        }
    }

    private static List<String> delay() throws Exception {
        long start = System.currentTimeMillis();
        send("Delay", List.of("d"), message -> message.setDeliveryTimestamp(start + 5000));
        List<String> bodies = receive("Delay", "delay", 1, "");
        bodies.add(System.currentTimeMillis() - start > 2900 ? "late" : "early");
        return bodies;
    }

    private static List<String> recall() throws Exception {
        long due = System.currentTimeMillis() + 6000;
        try (Producer producer = producer("Delay")) {
            SendReceipt receipt = producer.send(message("Delay", "recalled").setDeliveryTimestamp(due).build());
            producer.send(message("Delay", "kept").setDeliveryTimestamp(due + 1000).build());
            // 5.0.7 has neither of these methods.
            String handle = (String) SendReceipt.class.getMethod("getRecallHandle").invoke(receipt);
            Object recalled = Producer.class.getMethod("recallMessage", String.class, String.class)
                .invoke(producer, prefix + "Delay", handle);
            Object id = recalled.getClass().getMethod("getMessageId").invoke(recalled);
            List<String> words = new ArrayList<>();
            words.add(id.toString().equals(receipt.getMessageId().toString()) ? "same" : "other");
            words.addAll(receive("Delay", "delay", 1, ""));
            return words;
        }
    }

    private static List<String> filters() throws Exception {
        List<String> byTag = new CopyOnWriteArrayList<>();
        List<String> bySql = new CopyOnWriteArrayList<>();
        PushConsumer tags = push("Normal", "bytag", new FilterExpression("B || C"), view -> byTag.add(body(view)));
        FilterExpression sql = new FilterExpression("number > 5", FilterExpressionType.SQL92);
        PushConsumer numbers = push("Normal", "bysql", sql, view -> bySql.add(body(view)));
        for (int i = 0; i < 10; i++) {
            String tag = "ABC".substring(i % 3, i % 3 + 1);
            String number = String.valueOf(i);
            send("Normal", List.of("m" + i), message -> message.setTag(tag).addProperty("number", number));
        }
        await(() -> byTag.size() + bySql.size() >= 10);
        tags.close();
        numbers.close();
        List<String> found = sorted(byTag);
        found.addAll(sorted(bySql));
        return found;
    }

    private static List<String> numbered(String letter, int count) {
        return IntStream.range(0, count).mapToObj(number -> letter + number).collect(Collectors.toList());
    }

    private static List<String> sorted(List<String> words) {
        return words.stream().sorted().collect(Collectors.toList());
    }

    private static Producer producer(String topic) throws Exception {
        return PROVIDER.newProducerBuilder().setClientConfiguration(conf).setTopics(prefix + topic)
            .setTransactionChecker(view -> TransactionResolution.COMMIT).build();
    }

    private static MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(prefix + topic).setTag("A").setKeys("k" + body)
            .addProperty("a", body).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(String topic, List<String> bodies, Consumer<MessageBuilder> more) throws Exception {
        try (Producer producer = producer(topic)) {
            for (String body : bodies) {
                MessageBuilder message = message(topic, body);
                more.accept(message);
                producer.send(message.build());
            }
        }
    }

    /** The bodies as they arrive; the refused one is hidden for ten seconds the first time. */
    private static List<String> receive(String topic, String group, int count, String refused) throws Exception {
        List<String> bodies = new ArrayList<>();
        try (SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(conf)
            .setConsumerGroup(prefix + group).setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(prefix + topic, FilterExpression.SUB_ALL)).build()) {
            for (long end = System.currentTimeMillis() + SECONDS * 1000; bodies.size() < count && System.currentTimeMillis() < end; ) {
                for (MessageView view : consumer.receive(4, Duration.ofSeconds(20))) {
                    if (body(view).equals(refused) && view.getDeliveryAttempt() == 1) {
                        consumer.changeInvisibleDuration(view, Duration.ofSeconds(10));
                        continue;
                    }
                    consumer.ack(view);
                    bodies.add(body(view));
                }
            }
        }
        return bodies;
    }

    /** Deliveries as body and attempt, until there are so many. The refused message fails the first time, or every time. */
    private static List<String> pushed(
        String topic, String group, int count, String refused, boolean always, String says
    ) throws Exception {
        List<String> seen = new CopyOnWriteArrayList<>();
        PushConsumer consumer = push(topic, group, FilterExpression.SUB_ALL, view -> {
            seen.add(body(view) + "/" + view.getDeliveryAttempt());
            if (says != null) {
                System.out.println(says + " " + body(view) + " " + view.getDeliveryAttempt() + " " + view.getTag().orElse("-")
                    + " " + String.join(",", new TreeSet<>(view.getKeys())) + " " + view.getProperties().getOrDefault("a", "-"));
            }
            return !body(view).equals(refused) || !always && view.getDeliveryAttempt() > 1;
        });
        await(() -> seen.size() >= count);
        consumer.close();
        return seen;
    }

    private static PushConsumer push(String topic, String group, FilterExpression filter, Predicate<MessageView> consumes) throws Exception {
        return PROVIDER.newPushConsumerBuilder().setClientConfiguration(conf).setConsumerGroup(prefix + group)
            .setSubscriptionExpressions(Collections.singletonMap(prefix + topic, filter)).setMessageListener(
                view -> consumes.test(view) ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE).build();
    }

    private static void await(BooleanSupplier isDone) throws InterruptedException {
        for (long end = System.currentTimeMillis() + SECONDS * 1000; !isDone.getAsBoolean() && System.currentTimeMillis() < end; ) {
            Thread.sleep(100);
        }
    }

    private static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }
}
