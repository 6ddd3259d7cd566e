import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * One of everything an official client can ask, in one JVM, for the recording of golden vectors. Compiles against 4.9 and 5.5:
 * what only one of them has is called by name. A step that fails is printed and passed over: refusals are worth recording too.
 * After "READY key=value ..." it stays (consumers online) until a line comes on stdin, then shuts down in the ordinary way.
 */
public class Traffic {
    static final String TOPIC = "golden_topic";
    static final String RPC_TOPIC = "golden_rpc";
    static final String BROKER = "127.0.0.1:10911";
    static final MessageQueue QUEUE = new MessageQueue(TOPIC, "broker-a", 0);
    static final byte[] BODY = "body".getBytes(StandardCharsets.UTF_8);
    static final List<AutoCloseable> running = new ArrayList<>();

    interface Step {
        Object run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = producer("golden_producer");
        SendResult first = (SendResult) step("send", () -> producer.send(message("TagA", "key0")));
        step("sends", () -> sends(producer));
        step("transactions", Traffic::transactions);
        DefaultMQPushConsumer push = push("golden_push", TOPIC, "TagA || TagB");
        step("more consumers", Traffic::moreConsumers);
        step("request and reply", () -> requestAndReply(producer));
        DefaultMQPullConsumer pull = new DefaultMQPullConsumer("golden_pull");
        pull.start();
        running.add(pull::shutdown);
        step("pulls", () -> pulls(pull));
        step("lite pull", Traffic::litePull);
        step("new in 5", () -> newInFive(producer));
        DefaultMQAdminExt admin = new DefaultMQAdminExt("golden_admin");
        admin.start();
        running.add(admin::shutdown);
        step("queries", () -> queries(pull, first));
        Thread.sleep(6000); // consumers report their offsets after 5 s, and checks of open transactions have come by then
        String client = push.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        step("group questions", () -> groupQuestions(admin, client, first));
        step("name server lists", () -> nameServerLists(admin));
        step("refusals", () -> refusals(admin, client));
        System.out.println("READY client=" + client + " msgId=" + first.getOffsetMsgId() + " uniq=" + first.getMsgId());
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        for (int i = running.size() - 1; i >= 0; i--) {
            AutoCloseable each = running.get(i);
            step("shutdown", () -> {
                each.close();
                return null;
            });
        }
        System.exit(0);
    }

    static Object step(String name, Step step) {
        try {
            return step.run();
        } catch (Throwable failure) {
            Throwable cause = failure instanceof InvocationTargetException ? failure.getCause() : failure;
            System.out.println("step " + name + ": " + cause);
            return null;
        }
    }

    static Message message(String tag, String key) {
        return new Message(TOPIC, tag, key, BODY);
    }

    static DefaultMQProducer producer(String group) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        running.add(producer::shutdown);
        return producer;
    }

    static Object sends(DefaultMQProducer producer) throws Exception {
        for (int queue = 0; queue < 4; queue++) {
            producer.send(message("TagB", "key" + queue), new MessageQueue(TOPIC, "broker-a", queue));
        }
        producer.sendOneway(message("TagA", ""));
        Message delayed = message("TagA", "late");
        delayed.setDelayTimeLevel(1);
        producer.send(delayed);
        Message attributes = new Message(TOPIC, "TagC", "key6 key7", 5, "\u4f60\u597d".getBytes(StandardCharsets.UTF_8), true);
        attributes.putUserProperty("a", "7");
        attributes.putUserProperty("name", "gr\u00fc\u00dfe");
        producer.send(attributes);
        producer.send(new Message(TOPIC, "TagA", "big", new byte[5000])); // compressed by the client
        producer.send(Arrays.asList(message("TagA", "b1"), message("TagB", "b2"), message("TagA", "b3")));
        step("auto create", () -> producer.send(new Message("golden_auto_created", BODY)));
        return null;
    }

    static Object transactions() throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("golden_transactions");
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object wanted) {
                return (LocalTransactionState) wanted;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        running.add(producer::shutdown);
        for (LocalTransactionState state : LocalTransactionState.values()) {
            producer.sendMessageInTransaction(message("TagT", state.name()), state);
        }
        return null;
    }

    static DefaultMQPushConsumer push(String group, String topic, String tags) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setInstanceName(group);
        consumer.subscribe(topic, tags);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            boolean refuse = "key1".equals(message.getKeys()) && message.getReconsumeTimes() == 0;
            return refuse ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        running.add(consumer::shutdown);
        return consumer;
    }

    static Object moreConsumers() throws Exception {
        DefaultMQPushConsumer ordered = new DefaultMQPushConsumer("golden_ordered");
        ordered.setInstanceName("golden_ordered");
        ordered.subscribe(TOPIC, "*");
        ordered.registerMessageListener((MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUCCESS);
        ordered.start();
        running.add(ordered::shutdown);
        DefaultMQPushConsumer second = new DefaultMQPushConsumer("golden_push");
        second.setInstanceName("golden_second");
        second.subscribe(TOPIC, "TagA || TagB");
        second.registerMessageListener(
            (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        second.start();
        DefaultMQPushConsumer sql = new DefaultMQPushConsumer("golden_sql");
        sql.setInstanceName("golden_sql");
        sql.subscribe(TOPIC, MessageSelector.bySql("a is not null and a between 0 and 9"));
        sql.registerMessageListener(
            (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        sql.start();
        running.add(sql::shutdown);
        step("bad sql", () -> {
            DefaultMQPushConsumer bad = new DefaultMQPushConsumer("golden_bad_sql");
            bad.setInstanceName("golden_bad_sql");
            bad.subscribe(TOPIC, MessageSelector.bySql("a > > 1"));
            bad.registerMessageListener(
                (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            try {
                bad.start();
            } finally {
                bad.shutdown();
            }
            return null;
        });
        Thread.sleep(1500);
        second.shutdown();
        return null;
    }

    static Object requestAndReply(DefaultMQProducer producer) throws Exception {
        DefaultMQPushConsumer answering = new DefaultMQPushConsumer("golden_answering");
        answering.setInstanceName("golden_answering");
        answering.subscribe(RPC_TOPIC, "*");
        answering.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            step("reply", () -> producer.send(MessageUtil.createReplyMessage(messages.get(0), BODY)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        answering.start();
        running.add(answering::shutdown);
        return producer.request(new Message(RPC_TOPIC, BODY), 15000);
    }

    static Object pulls(DefaultMQPullConsumer pull) throws Exception {
        pull.setConsumerPullTimeoutMillis(5000);
        Set<MessageQueue> queues = pull.fetchSubscribeMessageQueues(TOPIC);
        for (MessageQueue queue : queues) {
            pull.pull(queue, "*", 0, 1);
        }
        var found = pull.pull(QUEUE, "*", pull.minOffset(QUEUE), 32);
        step("nothing matches", () -> pull.pull(QUEUE, "TagNone", 0, 32));
        step("nothing new", () -> pull.pull(QUEUE, "*", pull.maxOffset(QUEUE), 32));
        step("illegal", () -> pull.pull(QUEUE, "*", 100000, 32));
        step("suspended", () -> {
            pull.setBrokerSuspendMaxTimeMillis(1000);
            return pull.pullBlockIfNotFound(QUEUE, "*", pull.maxOffset(QUEUE), 32);
        });
        step("no offset", () -> pull.fetchConsumeOffset(QUEUE, true));
        pull.updateConsumeOffset(QUEUE, 1);
        pull.getDefaultMQPullConsumerImpl().getOffsetStore().persistAll(queues);
        Thread.sleep(300);
        step("offset", () -> pull.fetchConsumeOffset(QUEUE, true));
        step("send back", () -> {
            pull.sendMessageBack(found.getMsgFoundList().get(0), 3);
            return null;
        });
        return null;
    }

    static Object litePull() throws Exception {
        DefaultLitePullConsumer lite = new DefaultLitePullConsumer("golden_lite");
        lite.setInstanceName("golden_lite");
        lite.subscribe(TOPIC, "*");
        lite.start();
        running.add(lite::shutdown);
        for (int i = 0; i < 3; i++) {
            lite.poll(1500);
        }
        step("commit", () -> call(lite, "commitSync"));
        return step("assigned offset", () -> lite.committed(QUEUE));
    }

    static Object newInFive(DefaultMQProducer producer) throws Exception {
        Message timed = message("TagA", "recalled");
        timed.putUserProperty("later", "1");
        call(timed, "setDelayTimeMs", 60000L);
        SendResult result = producer.send(timed);
        step("recall", () -> call(producer, "recallMessage", TOPIC, call(result, "getRecallHandle")));
        step("bad recall", () -> call(producer, "recallMessage", TOPIC, "nonsense"));
        DefaultMQPushConsumer pop = new DefaultMQPushConsumer("golden_pop");
        pop.setInstanceName("golden_pop");
        pop.subscribe(TOPIC, "*");
        call(pop, "setClientRebalance", false);
        pop.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            boolean refuse = "key2".equals(messages.get(0).getKeys());
            return refuse ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        pop.start();
        running.add(pop::shutdown);
        Thread.sleep(3000);
        return null;
    }

    static Object queries(DefaultMQPullConsumer pull, SendResult sent) throws Exception {
        long now = System.currentTimeMillis();
        step("max", () -> pull.maxOffset(QUEUE));
        step("min", () -> pull.minOffset(QUEUE));
        step("by time", () -> pull.searchOffset(QUEUE, now - 3600_000));
        step("earliest", () -> pull.earliestMsgStoreTime(QUEUE));
        step("view", () -> pull.viewMessage(TOPIC, sent.getOffsetMsgId()));
        step("by key", () -> pull.queryMessage(TOPIC, "key0", 4, 0, now + 1000));
        step("by absent key", () -> pull.queryMessage(TOPIC, "absent", 4, 0, now + 1000));
        step("by unique key", () -> pull.viewMessage(TOPIC, sent.getMsgId()));
        return null;
    }

    static Object groupQuestions(DefaultMQAdminExt admin, String client, SendResult sent) throws Exception {
        step("time span", () -> admin.queryConsumeTimeSpan(TOPIC, "golden_push"));
        step("who consumes", () -> admin.queryTopicConsumeByWho(TOPIC));
        step("status from client", () -> admin.getConsumeStatus(TOPIC, "golden_push", client));
        step("running info", () -> admin.getConsumerRunningInfo("golden_push", client, false));
        step("directly", () -> admin.consumeMessageDirectly("golden_push", client, TOPIC, sent.getOffsetMsgId()));
        step("all groups", () -> admin.getAllSubscriptionGroup(BROKER, 5000));
        step("all topics", () -> admin.getAllTopicConfig(BROKER, 5000));
        step("user topics", () -> admin.getUserTopicConfig(BROKER, false, 5000));
        step("topic config", () -> admin.examineTopicConfig(BROKER, TOPIC));
        step("group config", () -> admin.examineSubscriptionGroupConfig(BROKER, "golden_push"));
        step("broker stats", () -> admin.viewBrokerStatsData(BROKER, "TOPIC_PUT_NUMS", TOPIC));
        step("stats", () -> admin.examineConsumeStats("golden_push"));
        step("stats of topic", () -> admin.examineConsumeStats("golden_push", TOPIC));
        step("commit for", () -> {
            admin.updateConsumeOffset(BROKER, "golden_commit", QUEUE, 1);
            return null;
        });
        step("clone", () -> {
            admin.cloneGroupOffset("golden_push", "golden_clone", TOPIC, false);
            return null;
        });
        step("clone for no group", () -> {
            admin.cloneGroupOffset("golden_push", "golden_clone", "golden_absent", false);
            return null;
        });
        step("topics of group", () -> call(admin, "queryTopicsByConsumer", "golden_push"));
        step("subscription", () -> call(admin, "querySubscription", "golden_push", TOPIC));
        step("upper", () -> call(admin, "searchUpperBoundaryOffset", QUEUE, System.currentTimeMillis()));
        step("forbidden", () -> call(admin, "updateAndGetGroupReadForbidden", BROKER, "golden_commit", TOPIC, true));
        step("ha", () -> call(admin, "getBrokerHAStatus", BROKER));
        step("cold", () -> call(admin, "getColdDataFlowCtrInfo", BROKER));
        Object api = call(field(field(admin, "defaultMQAdminExtImpl"), "mqClientInstance"), "getMQClientAPIImpl");
        step("one group", () -> call(api, "getSubscriptionGroupConfig", BROKER, "golden_push", 5000L));
        step("no group", () -> call(api, "getSubscriptionGroupConfig", BROKER, "golden_absent", 5000L));
        step("correction", () -> call(api, "queryCorrectionOffset", BROKER, TOPIC, "golden_push", Set.of("golden_ordered"), 5000L));
        step("check half message again", () -> admin.resumeCheckHalfMessage(TOPIC, sent.getOffsetMsgId()));
        step("queue reset", () -> call(admin, "resetOffsetByQueueId", BROKER, "golden_commit", TOPIC, 0, 0L));
        return null;
    }

    static Object nameServerLists(DefaultMQAdminExt admin) throws Exception {
        step("key values", () -> admin.getKVListByNamespace("GOLDEN"));
        step("key value", () -> admin.getKVConfig("GOLDEN", "key"));
        step("no key values", () -> admin.getKVListByNamespace("ABSENT"));
        step("no key value", () -> admin.getKVConfig("ABSENT", "key"));
        step("topics of cluster", () -> admin.fetchTopicsByCLuster("DefaultCluster"));
        Object api = call(field(field(admin, "defaultMQAdminExtImpl"), "mqClientInstance"), "getMQClientAPIImpl");
        step("system topics", () -> call(api, "getSystemTopicList", 5000L));
        step("system topics of broker", () -> call(api, "getSystemTopicListFromBroker", BROKER, 5000L));
        step("unit topics", () -> call(api, "getUnitTopicList", true, 5000L));
        step("unit sub topics", () -> call(api, "getHasUnitSubTopicList", true, 5000L));
        step("unit sub ununit topics", () -> call(api, "getHasUnitSubUnUnitTopicList", true, 5000L));
        return null;
    }

    static Object refusals(DefaultMQAdminExt admin, String client) throws Exception {
        MessageQueue nowhere = new MessageQueue("golden_absent", "broker-a", 0);
        step("absent route", () -> admin.examineTopicRouteInfo("golden_absent"));
        step("absent stats", () -> admin.viewBrokerStatsData(BROKER, "TOPIC_PUT_NUMS", "golden_absent"));
        step("absent span", () -> admin.queryConsumeTimeSpan("golden_absent", "golden_push"));
        step("absent producers", () -> admin.examineProducerConnectionInfo("golden_absent", TOPIC));
        step("absent client", () -> admin.getConsumerRunningInfo("golden_push", "nobody", false));
        step("absent message", () -> admin.viewMessage(TOPIC, "7F00000100002A9F0000000000FFFFFF"));
        step("absent config", () -> admin.examineTopicConfig(BROKER, "golden_absent"));
        step("absent group config", () -> admin.examineSubscriptionGroupConfig(BROKER, "golden_absent"));
        Object api = call(field(field(admin, "defaultMQAdminExtImpl"), "mqClientInstance"), "getMQClientAPIImpl");
        step("absent group online", () -> call(api, "getConsumerConnectionList", BROKER, "golden_absent", 5000L));
        step("absent topic stats", () -> call(api, "getTopicStatsInfo", BROKER, "golden_absent", 5000L));
        step("absent consumers", () -> call(api, "getConsumerIdListByGroup", BROKER, "golden_absent", 5000L));
        step("stranger's offset", () -> {
            admin.updateConsumeOffset(BROKER, "golden_absent", nowhere, 1);
            return null;
        });
        return null;
    }

    static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    /** A method by name and number of arguments, for what only one version has. */
    static Object call(Object owner, String name, Object... arguments) throws Exception {
        for (Method method : owner.getClass().getMethods()) {
            if (method.getName().equals(name) && fits(method, arguments)) {
                return method.invoke(owner, arguments);
            }
        }
        throw new NoSuchMethodException(name + " is not in this version");
    }

    static boolean fits(Method method, Object[] arguments) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            boolean primitive = types[i].isPrimitive();
            if (!primitive && arguments[i] != null && !types[i].isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }
}
