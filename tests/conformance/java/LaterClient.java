import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A client of what a server does later, until a line on standard input ends it. Arguments: what, topic, group.
 *
 * fail          a consumer that never succeeds: prints each attempt
 * consume       a consumer that starts where CONSUME_FROM_LAST_OFFSET leads: prints queue offset and body
 * levels        sends a message with each of the 18 delay levels
 * timed         sends a message for two hours later by delay, and one by the time of this machine
 * transaction   sends half messages without verdict; answers the first two checks with UNKNOW, then commits
 */
public class LaterClient {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        switch (args[0]) {
            case "levels":
            case "timed":
                DefaultMQProducer producer = new DefaultMQProducer(args[2]);
                producer.start();
                send(producer, args[0], topic);
                producer.shutdown();
                break;
            case "transaction":
                TransactionMQProducer asked = new TransactionMQProducer(args[2]);
                asked.setTransactionListener(new Verdicts());
                asked.start();
                asked.sendMessageInTransaction(message(topic, "open"), null);
                System.out.println("READY");
                System.in.read();
                asked.shutdown();
                break;
            default:
                DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
                consumer.subscribe(topic, "*");
                consumer.setHeartbeatBrokerInterval(1000); // a heartbeat that is dropped is made up for soon
                boolean fails = "fail".equals(args[0]);
                consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    for (MessageExt message : messages) {
                        String body = new String(message.getBody(), StandardCharsets.UTF_8);
                        System.out.println("GOT " + message.getReconsumeTimes() + " " + message.getQueueOffset() + " " + body);
                    }
                    return fails ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                consumer.start();
                System.out.println("READY");
                System.in.read();
                consumer.shutdown();
        }
        System.exit(0);
    }

    private static Message message(String topic, String body) {
        return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(DefaultMQProducer producer, String what, String topic) throws Exception {
        if ("timed".equals(what)) {
            Message delayed = message(topic, "delay");
            MessageAccessor.putProperty(delayed, "TIMER_DELAY_SEC", "7200");
            producer.send(delayed);
            Message timed = message(topic, "time");
            MessageAccessor.putProperty(timed, "TIMER_DELIVER_MS", Long.toString(System.currentTimeMillis() + 7_200_000));
            producer.send(timed);
            return;
        }
        for (int level = 1; level <= 18; level++) {
            Message message = message(topic, "level " + level);
            message.setDelayTimeLevel(level);
            producer.send(message);
        }
    }

    private static class Verdicts implements TransactionListener {
        private final AtomicInteger checks = new AtomicInteger();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            int number = checks.incrementAndGet();
            System.out.println("ASKED " + number);
            return number < 3 ? LocalTransactionState.UNKNOW : LocalTransactionState.COMMIT_MESSAGE;
        }
    }
}
