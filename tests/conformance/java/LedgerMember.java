import java.lang.reflect.Method;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group until a line on standard input ends it: prints each message once it is consumed.
 *
 * Arguments: topic, group, mode (concurrent, orderly, broadcast, sql, pop), instance name, ms that the listener takes.
 * A message whose body begins with "again" is refused the first time.
 */
public class LedgerMember {
    public static void main(String[] args) throws Exception {
        String topic = args[0];
        String mode = args[2];
        long takesMs = Long.parseLong(args[4]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setInstanceName(args[3]);
        consumer.setHeartbeatBrokerInterval(1000); // a heartbeat that is dropped is made up for soon
        if ("sql".equals(mode)) {
            consumer.subscribe(topic, MessageSelector.bySql("number >= 10"));
        } else {
            consumer.subscribe(topic, "*");
        }
        if ("broadcast".equals(mode)) {
            set(consumer, "setMessageModel", "BROADCASTING");
        }
        if ("pop".equals(mode)) {
            set(consumer, "setClientRebalance", "false");
        }
        if ("orderly".equals(mode)) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                consume(messages, takesMs);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                consume(messages, takesMs) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        consumer.start();
        System.out.println("JOINED");
        System.in.read();
        consumer.shutdown();
        System.out.println("LEFT");
        System.exit(0);
    }

    /** These setters and their types are not the same in 4.9 and 5.5. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void set(DefaultMQPushConsumer consumer, String name, String value) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (name.equals(method.getName())) {
                Class type = method.getParameterTypes()[0];
                method.invoke(consumer, type.isEnum() ? Enum.valueOf(type, value) : Boolean.valueOf(value));
                return;
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static boolean consume(List<MessageExt> messages, long takesMs) {
        boolean isGood = true;
        for (MessageExt message : messages) {
            try {
                Thread.sleep(takesMs);
            } catch (InterruptedException leaving) {
                Thread.currentThread().interrupt();
            }
            isGood &= !new String(message.getBody()).startsWith("again") || message.getReconsumeTimes() > 0;
            System.out.println((isGood ? "SEEN " : "REFUSED ") + message.getQueueId() + " " + message.getQueueOffset()
                + " " + message.getReconsumeTimes() + " " + message.getMsgId());
        }
        return isGood;
    }
}
