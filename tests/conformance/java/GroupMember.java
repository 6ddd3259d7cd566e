import java.lang.reflect.Method;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group until it is told to leave: prints each message, leaves in good order.
 *
 * Arguments: topic, group, mode (concurrent, orderly or broadcast); then, as one wants, how often routes are asked for
 * and offsets reported, and how long the listener takes, both in ms.
 */
public class GroupMember {
    public static void main(String[] args) throws Exception {
        String topic = args[0];
        boolean orderly = "orderly".equals(args[2]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (args.length > 3) {
            consumer.setPollNameServerInterval(Integer.parseInt(args[3]));
            consumer.setPersistConsumerOffsetInterval(Integer.parseInt(args[3]));
        }
        consumer.subscribe(topic, "*");
        if ("broadcast".equals(args[2])) {
            setBroadcasting(consumer);
            consumer.setInstanceName("one");
            consumer.setClientIP("127.0.0.1");
        }
        long delayMs = args.length > 4 ? Long.parseLong(args[4]) : 0;
        if (orderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                print(messages, delayMs);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                print(messages, delayMs);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        System.out.println("JOINED");
        System.in.read();
        consumer.shutdown();
        System.out.println("LEFT");
        System.exit(0);
    }

    /** MessageModel stands in different packages in 4.9 and 5.5. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void setBroadcasting(DefaultMQPushConsumer consumer) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if ("setMessageModel".equals(method.getName())) {
                Class type = method.getParameterTypes()[0];
                method.invoke(consumer, Enum.valueOf(type, "BROADCASTING"));
            }
        }
    }

    private static void print(List<MessageExt> messages, long delayMs) {
        try {
            Thread.sleep(delayMs);
        } catch (InterruptedException leaving) {
            // An exception would send the message to the retry topic: it has been seen all the same.
        }
        for (MessageExt message : messages) {
            System.out.println("SEEN " + message.getQueueId() + " " + message.getQueueOffset());
        }
    }
}
