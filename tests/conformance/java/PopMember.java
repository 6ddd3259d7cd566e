import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group that pops (clientRebalance=false). Prints each message with its topic and number of tries, and
 * refuses, the first time, those whose body begins with "again". Arguments: topic, group, expression.
 */
public class PopMember {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[0], args[2]);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(10000);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            boolean isRefused = false;
            for (MessageExt message : messages) {
                String body = new String(message.getBody());
                System.out.println("SEEN " + message.getTopic() + " " + body + " " + message.getReconsumeTimes());
                isRefused |= body.startsWith("again") && message.getReconsumeTimes() == 0;
            }
            return isRefused ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.start();
        System.out.println("JOINED");
        System.in.read();
        consumer.shutdown();
        System.out.println("LEFT");
        System.exit(0);
    }
}
