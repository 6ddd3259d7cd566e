import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Sends three messages and consumes them, with an access key ("-" for none). Arguments: topic, group, key, secret.
 * Prints SENT and SEEN for each message, REFUSED code text where the first send is refused, DONE at the end.
 */
public class GuardedTraffic {
    public static void main(String[] args) throws Exception {
        RPCHook hook = "-".equals(args[2]) ? null : new AclClientRPCHook(new SessionCredentials(args[2], args[3]));
        DefaultMQProducer producer = new DefaultMQProducer("guarded_producer", hook);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        try {
            for (int at = 0; at < 3; at++) {
                producer.send(new Message(args[0], ("guarded " + at).getBytes(StandardCharsets.UTF_8)));
                System.out.println("SENT " + at);
            }
        } catch (Exception refused) {
            Throwable cause = refused.getCause() == null ? refused : refused.getCause();
            System.out.println("REFUSED " + String.valueOf(cause.getMessage()).replace('\n', ' '));
            System.out.flush();
            System.exit(0);
        }
        CountDownLatch seen = new CountDownLatch(3);
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(args[1], hook, new AllocateMessageQueueAveragely());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[0], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> {
                System.out.println("SEEN " + new String(message.getBody(), StandardCharsets.UTF_8));
                seen.countDown();
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        boolean all = seen.await(40, TimeUnit.SECONDS);
        consumer.shutdown();
        producer.shutdown();
        System.out.println(all ? "DONE" : "TIMEOUT");
        System.out.flush();
        System.exit(0);
    }
}
