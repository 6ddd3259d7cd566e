import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.ArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * The official gRPC producer: one line on stdout for each thing it does. Arguments: TLS (true or false), user, password
 * (a dash for none), then the steps. Topics: Normal, Fifo, Delay, Trans, each of its message type.
 */
public class GrpcProducer {
    static final ClientServiceProvider provider = ClientServiceProvider.loadService();
    static ClientConfiguration conf;

    public static void main(String[] args) throws Exception {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder()
            .setEndpoints("127.0.0.1:8081").enableSsl(Boolean.parseBoolean(args[0])).setRequestTimeout(Duration.ofSeconds(10));
        if (!args[1].equals("-")) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(args[1], args[2]));
        }
        conf = builder.build();
        for (int i = 3; i < args.length; i++) {
            try {
                step(args[i]);
            } catch (ClientException | IllegalStateException error) {
                Throwable reason = error;
                while (!(reason instanceof ClientException) && reason.getCause() != null) {
                    reason = reason.getCause();
                }
                System.out.println(args[i] + " refused " + reason.getClass().getSimpleName() + " " + code(reason));
            }
        }
        System.exit(0);
    }

    private static void step(String name) throws Exception {
        switch (name) {
            case "normal": normal(); break;
            case "fifo": fifo(); break;
            case "delay": delay(); break;
            case "transaction": transaction(); break;
            case "check": check(); break;
            case "recall": recall(); break;
            case "wrongtype": wrongType(); break;
            case "unknown": unknown(); break;
            default: throw new IllegalArgumentException(name);
        }
    }

    private static MessageBuilder message(String topic, String body) {
        return provider.newMessageBuilder().setTopic(topic).setTag("A").setKeys("k1", "k2").addProperty("mine", "1")
            .setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static Producer producer(String... topics) throws ClientException {
        return provider.newProducerBuilder().setClientConfiguration(conf).setTopics(topics).build();
    }

    private static void normal() throws Exception {
        try (Producer producer = producer("Normal")) {
            for (int i = 0; i < 5; i++) {
                producer.send(message("Normal", "n" + i).build());
            }
            producer.sendAsync(message("Normal", "async").build()).get(10, TimeUnit.SECONDS);
        }
        System.out.println("normal " + new TreeSet<>(received("Normal", 6)));
    }

    private static void fifo() throws Exception {
        try (Producer producer = producer("Fifo")) {
            for (int i = 0; i < 8; i++) {
                producer.send(message("Fifo", "f" + i).setMessageGroup("order-1").build());
            }
        }
        System.out.println("fifo " + received("Fifo", 8));
    }

    private static void delay() throws Exception {
        long start = System.currentTimeMillis();
        try (Producer producer = producer("Delay")) {
            SendReceipt receipt = producer.send(message("Delay", "d").setDeliveryTimestamp(start + 3000).build());
            System.out.println("delay receipt " + (receipt.getMessageId() != null));
        }
        List<String> got = received("Delay", 1);
        System.out.println("delay " + got + " late " + (System.currentTimeMillis() - start >= 2900));
    }

    private static void transaction() throws Exception {
        Producer producer = provider.newProducerBuilder().setClientConfiguration(conf).setTopics("Trans")
            .setTransactionChecker(view -> TransactionResolution.UNKNOWN).build();
        Transaction first = producer.beginTransaction();
        producer.send(message("Trans", "committed").build(), first);
        first.commit();
        Transaction second = producer.beginTransaction();
        producer.send(message("Trans", "rolled back").build(), second);
        second.rollback();
        System.out.println("transaction " + received("Trans", 1));
        producer.close();
    }

    private static void check() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        Producer producer = provider.newProducerBuilder().setClientConfiguration(conf).setTopics("Trans")
            .setTransactionChecker(view -> {
                System.out.println("check asked " + body(view) + " " + view.getProperties().get("mine"));
                asked.countDown();
                return TransactionResolution.COMMIT;
            }).build();
        producer.send(message("Trans", "forgotten").build(), producer.beginTransaction());
        asked.await(60, TimeUnit.SECONDS);
        System.out.println("check " + received("Trans", 1));
        producer.close();
    }

    private static void recall() throws Exception {
        try (Producer producer = producer("Delay")) {
            long due = System.currentTimeMillis() + 4000;
            SendReceipt receipt = producer.send(message("Delay", "recalled").setDeliveryTimestamp(due).build());
            producer.send(message("Delay", "kept").setDeliveryTimestamp(due + 1000).build());
            String handle = (String) SendReceipt.class.getMethod("getRecallHandle").invoke(receipt);
            Object recalled = Producer.class.getMethod("recallMessage", String.class, String.class).invoke(producer, "Delay", handle);
            Object id = recalled.getClass().getMethod("getMessageId").invoke(recalled);
            System.out.println("recall same " + id.toString().equals(receipt.getMessageId().toString()));
        }
        System.out.println("recall " + received("Delay", 1));
    }

    private static void wrongType() throws Exception {
        try (Producer producer = producer("Normal")) {
            producer.send(message("Normal", "x").setMessageGroup("g").build());
            System.out.println("wrongtype accepted");
        } catch (IllegalArgumentException error) {
            System.out.println("wrongtype refused by the client");
        }
    }

    private static void unknown() throws Exception {
        try (Producer producer = producer("Unknown")) {
            producer.send(message("Unknown", "x").build());
            System.out.println("unknown sent");
        }
    }

    private static List<String> received(String topic, int count) throws Exception {
        List<String> bodies = new ArrayList<>();
        try (SimpleConsumer consumer = provider.newSimpleConsumerBuilder().setClientConfiguration(conf)
            .setConsumerGroup("group" + topic).setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL)).build()) {
            for (long end = System.currentTimeMillis() + 40000; bodies.size() < count && System.currentTimeMillis() < end; ) {
                for (MessageView view : consumer.receive(16, Duration.ofSeconds(30))) {
                    bodies.add(body(view));
                    consumer.ack(view);
                }
            }
        }
        return bodies;
    }

    private static String body(MessageView message) {
        return StandardCharsets.UTF_8.decode(message.getBody()).toString();
    }

    private static String code(Throwable error) {
        String text = String.valueOf(error.getMessage());
        int at = text.indexOf("response-code=");
        return at < 0 ? text : text.substring(at + 14, at + 19);
    }
}
