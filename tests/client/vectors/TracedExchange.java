import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What `hooks/test_trace.py` does, with the official client's own traces. */
public class TracedExchange {
    public static void main(String[] args) throws Exception {
        String prefix = args[0];
        String topic = prefix + "_traced";
        CountDownLatch done = new CountDownLatch(3);
        DefaultMQProducer producer = new DefaultMQProducer(prefix + "_p");
        producer.setEnableTrace(true);
        producer.setSendMsgTimeout(10000);
        producer.start();
        producer.send(new Message(topic, "first".getBytes()));
        TransactionMQProducer transactions = new TransactionMQProducer(prefix + "_t");
        transactions.setEnableTrace(true);
        transactions.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return new String(message.getBody()).equals("commit")
                    ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.UNKNOW;
            }
        });
        transactions.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(prefix + "_g");
        consumer.setEnableTrace(true);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            String body = new String(messages.get(0).getBody());
            if (body.equals("again") && messages.get(0).getReconsumeTimes() == 0) {
                context.setDelayLevelWhenNextConsume(1);
                done.countDown();
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            if (body.equals("again") || body.equals("commit")) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        producer.send(new Message(topic, "plain".getBytes()));
        producer.send(new Message(topic, "A", "k1 k2", "tagged".getBytes()));
        producer.send(new Message(topic, null, "k3", "again".getBytes()));
        transactions.sendMessageInTransaction(new Message(topic, null, "k4", "commit".getBytes()), null);
        transactions.sendMessageInTransaction(new Message(topic, "drop".getBytes()), null);
        done.await();
        consumer.shutdown();
        transactions.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
