// Prints what the official client decides, without any server. See README.md.
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.*;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.Validators;
import org.apache.rocketmq.client.common.ThreadLocalIndex;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.consumer.rebalance.*;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQAdminImpl;
import org.apache.rocketmq.client.impl.consumer.*;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consistenthash.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;

public class Client {
  static void row(String rule, Object input, Object result) {
    System.out.println(rule + "\t" + input + "\t" + result);
  }

  static String b64(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  static String fail(Throwable t) {
    while (t instanceof InvocationTargetException) t = t.getCause();
    if (t instanceof MQClientException) {
      MQClientException e = (MQClientException) t;
      String text = e.getErrorMessage();
      int end = text.indexOf("\nSee ");
      return "!" + e.getResponseCode() + " " + b64(end < 0 ? text : text.substring(0, end).trim());
    }
    return "!" + t.getClass().getSimpleName() + " " + b64(String.valueOf(t.getMessage()));
  }

  static Object get(Object o, String field) throws Exception {
    for (Class<?> k = o.getClass(); k != null; k = k.getSuperclass())
      try {
        Field f = k.getDeclaredField(field);
        f.setAccessible(true);
        return f.get(o);
      } catch (NoSuchFieldException e) {
      }
    throw new NoSuchFieldException(field);
  }

  static void set(Object o, String field, Object value) throws Exception {
    for (Class<?> k = o.getClass(); k != null; k = k.getSuperclass())
      try {
        Field f = k.getDeclaredField(field);
        f.setAccessible(true);
        f.set(o, value);
        return;
      } catch (NoSuchFieldException e) {
      }
    throw new NoSuchFieldException(field);
  }

  static Object call(Object o, String name, Object... a) throws Exception {
    for (Class<?> k = o.getClass(); k != null; k = k.getSuperclass())
      for (Method m : k.getDeclaredMethods())
        if (m.getName().equals(name) && m.getParameterCount() == a.length) {
          m.setAccessible(true);
          return m.invoke(o, a);
        }
    throw new NoSuchMethodException(name);
  }

  // -- allocation

  static MessageQueue queue(String text) {
    int colon = text.lastIndexOf(':');
    return new MessageQueue(
        "TopicTest", text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }

  static String allocate(
      AllocateMessageQueueStrategy strategy,
      String cid,
      List<MessageQueue> queues,
      List<String> cids) {
    try {
      return strategy.allocate("g", cid, queues, cids).stream()
          .map(q -> q.getBrokerName() + ":" + q.getQueueId())
          .collect(Collectors.joining(","));
    } catch (Throwable t) {
      return fail(t);
    }
  }

  static void allocation(
      AllocateMessageQueueStrategy strategy,
      List<String> queueTexts,
      List<String> cids,
      List<String> ask) {
    List<MessageQueue> queues = queueTexts.stream().map(Client::queue).collect(Collectors.toList());
    Collections.sort(queues);
    Collections.sort(cids);
    String asked =
        queues.stream()
            .map(q -> q.getBrokerName() + ":" + q.getQueueId())
            .collect(Collectors.joining(","));
    row(
        "allocate",
        strategy.getName()
            + ";"
            + asked
            + ";"
            + String.join(",", cids)
            + ";"
            + String.join(",", ask),
        ask.stream()
            .map(c -> allocate(strategy, c, queues, cids))
            .collect(Collectors.joining(";")));
  }

  static void allocations() throws Exception {
    List<AllocateMessageQueueStrategy> all =
        Arrays.asList(
            new AllocateMessageQueueAveragely(),
            new AllocateMessageQueueAveragelyByCircle(),
            new AllocateMessageQueueConsistentHash());
    for (AllocateMessageQueueStrategy strategy : all)
      for (int n : new int[] {1, 2, 3, 5, 8, 10, 16})
        for (int c : new int[] {1, 2, 3, 4, 7}) {
          List<String> queues = new ArrayList<>(), cids = new ArrayList<>();
          for (int i = 0; i < n; i++)
            queues.add("r" + (1 + i % 3) + "@broker-" + (i % 2) + ":" + i);
          for (int i = 0; i < c; i++) cids.add("r" + (1 + i % 2) + "@10.0.0." + i + "@77#" + i);
          allocation(strategy, queues, cids, new ArrayList<>(cids));
        }
    List<String> plain = Arrays.asList("broker-a:0", "broker-a:1", "broker-a:2", "broker-a:3");
    for (AllocateMessageQueueStrategy strategy : all) {
      allocation(
          strategy,
          plain,
          new ArrayList<>(Arrays.asList("C0", "C1")),
          Arrays.asList("C0", "", "X"));
      allocation(
          strategy, new ArrayList<>(), new ArrayList<>(Arrays.asList("C0")), Arrays.asList("C0"));
      allocation(strategy, plain, new ArrayList<>(), Arrays.asList("C0"));
      allocation(
          strategy,
          Arrays.asList("r1@b@:0", "r1@b@c:1", "@b:2", "r1:3", "r1@:4", "r3@b:5", "r2@b:6"),
          new ArrayList<>(Arrays.asList("r1@C0", "r2@C1")),
          Arrays.asList("r1@C0", "r2@C1"));
      allocation( // one client id twice
          strategy,
          Arrays.asList("r1@b:0", "r1@b:1", "r1@b:2", "r1@b:3", "r1@b:4", "r1@b:5"),
          new ArrayList<>(Arrays.asList("r1@C0", "r1@C0", "r1@C1")),
          Arrays.asList("r1@C0", "r1@C1"));
    }
    Class<?> md5 =
        Class.forName("org.apache.rocketmq.common.consistenthash.ConsistentHashRouter$MD5Hash");
    Constructor<?> make = md5.getDeclaredConstructor();
    make.setAccessible(true);
    HashFunction hash = (HashFunction) make.newInstance();
    for (String text :
        new String[] {"", "C0-0", "C0-9", "\u4e2d\u6587", queue("broker-a:0").toString()})
      row("ring-hash", b64(text), hash.hash(text));
    for (int nodes : new int[] {0, 1, 3, 100}) {
      List<MessageQueue> queues = plain.stream().map(Client::queue).collect(Collectors.toList());
      row(
          "virtual-nodes",
          nodes,
          allocate(
              new AllocateMessageQueueConsistentHash(nodes),
              "C0",
              queues,
              Arrays.asList("C0", "C1")));
    }
  }

  // -- names and messages

  interface Check {
    void run() throws Exception;
  }

  static String result(Check check) {
    try {
      check.run();
      return "";
    } catch (Throwable t) {
      return fail(t);
    }
  }

  static void validators() throws Exception {
    String a127 = String.join("", Collections.nCopies(127, "a"));
    for (String name :
        new String[] {
          "",
          " ",
          "\t\n",
          "\u00a0",
          "\u2003",
          "\u001c",
          "\u0085",
          "\u2007",
          "\u3000",
          "ok-_%|9",
          "a b",
          "a.b",
          "\u4e2d",
          "a\n",
          "%RETRY%g",
          "TBW102",
          "SCHEDULE_TOPIC_XXX" + "X",
          "RMQ_SYS_TRANS_HALF_TOPIC",
          "SELF_TEST_TOPIC",
          "OFFSET_MOVED_EVENT",
          "rmq_sys_x",
          "BenchmarkTest",
          a127.substring(7),
          a127.substring(6),
          a127,
          a127 + "a",
          a127 + a127 + "a",
          a127 + a127 + "aa",
          a127 + "\ud83d\ude00"
        }) {
      row("check-group", b64(name), result(() -> Validators.checkGroup(name)));
      row("check-topic", b64(name), result(() -> Validators.checkTopic(name)));
      row("check-system-topic", b64(name), result(() -> Validators.isSystemTopic(name)));
      row("check-send-topic", b64(name), result(() -> Validators.isNotAllowedSendTopic(name)));
    }
    DefaultMQProducer producer = new DefaultMQProducer("g");
    producer.setMaxMessageSize(16);
    for (int size : new int[] {-1, 0, 1, 16, 17})
      for (String lmq : new String[] {"", "a,b", "a/b"})
        for (String topic : new String[] {"t", "", "SELF_TEST_TOPIC"}) {
          Message m = new Message(topic, size < 0 ? null : new byte[size]);
          if (!lmq.isEmpty()) m.putUserProperty("X", "x");
          if (!lmq.isEmpty()) m.getProperties().put("INNER_MULTI_DISPATCH", lmq);
          row(
              "check-message",
              topic + ";" + size + ";" + lmq,
              result(() -> Validators.checkMessage(m, producer)));
        }
    String[][] batches = {
      {"t", "t"},
      {"t", "u"},
      {"t DELAY=0", "t"},
      {"t DELAY=1", "t"},
      {"t TIMER_DELAY_SEC=1"},
      {"t TIMER_DELAY_MS=1"},
      {"t TIMER_DELIVER_MS=1"},
      {"t TIMER_DELAY_MS=0"},
      {"t", "%RETRY%g"},
      {"t WAIT=false", "t"},
      {"t WAIT=false", "t WAIT=FALSE"},
      {"t WAIT=true", "t WAIT="},
      {"t WAIT=no", "t"}
    };
    for (String[] batch : batches) {
      List<Message> messages = new ArrayList<>();
      for (String text : batch) {
        String[] parts = text.split(" ");
        Message m = new Message(parts[0], new byte[1]);
        for (int i = 1; i < parts.length; i++) {
          int equals = parts[i].indexOf('=');
          m.getProperties().put(parts[i].substring(0, equals), parts[i].substring(equals + 1));
        }
        messages.add(m);
      }
      row(
          "check-batch",
          String.join(",", batch),
          result(() -> MessageBatch.generateFromList(messages)));
    }
  }

  // -- a consumer whose surroundings are ours

  static Map<MessageQueue, Long> offsets = new HashMap<>();
  static long stored;
  static List<String> asked = new ArrayList<>();

  static OffsetStore store() {
    return (OffsetStore)
        Proxy.newProxyInstance(
            Client.class.getClassLoader(),
            new Class<?>[] {OffsetStore.class},
            (proxy, method, a) -> {
              if (method.getName().equals("readOffset")) return stored;
              if (method.getName().equals("updateOffset"))
                asked.add("update " + a[1] + " " + ((Boolean) a[2] ? "increase" : "overwrite"));
              return null;
            });
  }

  static DefaultMQPushConsumerImpl consumer(DefaultMQPushConsumer settings) throws Exception {
    MQClientInstance instance =
        new MQClientInstance(new ClientConfig(), 0, "c") {
          public MQAdminImpl getMQAdminImpl() {
            return new MQAdminImpl(this) {
              public long maxOffset(MessageQueue mq) {
                return 700;
              }

              public long searchOffset(MessageQueue mq, long timestamp) {
                asked.add(String.valueOf(timestamp));
                return 300;
              }
            };
          }
        };
    DefaultMQPushConsumerImpl impl =
        (DefaultMQPushConsumerImpl) get(settings, "defaultMQPushConsumerImpl");
    set(impl, "mQClientFactory", instance);
    impl.setOffsetStore(store());
    ((RebalanceImpl) get(impl, "rebalanceImpl")).setmQClientFactory(instance);
    return impl;
  }

  static void firstPositions() throws Exception {
    DefaultMQPushConsumer settings = new DefaultMQPushConsumer("g");
    DefaultMQPushConsumerImpl impl = consumer(settings);
    settings.setConsumeTimestamp("20240229123456");
    RebalanceImpl rebalance = (RebalanceImpl) get(impl, "rebalanceImpl");
    for (ConsumeFromWhere where : ConsumeFromWhere.values())
      for (long value : new long[] {0, 1, 42, -1, -2, -3})
        for (String topic : new String[] {"t", "%RETRY%g"}) {
          settings.setConsumeFromWhere(where);
          stored = value;
          String result;
          try {
            result =
                String.valueOf(
                    rebalance.computePullFromWhereWithException(new MessageQueue(topic, "b", 0)));
          } catch (MQClientException e) {
            result = fail(e);
          }
          row("first-position", where + ";" + value + ";" + topic, result);
        }
    for (String text :
        new String[] {
          "20240229123456",
          "20230229123456",
          "20241301000000",
          "20240100000000",
          "20240001000000",
          "20240131250000",
          "20240131006199",
          "2024013100000",
          "202401310000001",
          "20240131000000x",
          "20240131000000 ",
          " 20240131000000",
          "2024013100000x",
          "202401310000",
          "2024-01-31 00:00",
          "",
          "now",
          "20240331023000",
          "20241027023000",
          "20240331030000",
          "20241027013000",
          "19700101000000",
          "19691231235959",
          "00010101000000",
          "99991231235959"
        }) {
      Date date = UtilAll.parseDate(text, UtilAll.YYYYMMDDHHMMSS);
      row("consume-timestamp", b64(text), date == null ? "" : date.getTime());
    }
    for (long ms : new long[] {0, 1700000000123L, 1711848600000L, 1729992600000L, 1729996200000L})
      row("consume-timestamp-text", ms, UtilAll.timeMillisToHumanString3(ms));
  }

  // -- process queue

  static MessageExt message(long offset, int bytes) {
    MessageExt m = new MessageExt();
    m.setTopic("t");
    m.setQueueOffset(offset);
    m.setBody(new byte[bytes]);
    m.setMsgId("id" + offset);
    return m;
  }

  static String state(ProcessQueue q) throws Exception {
    StringBuilder s = new StringBuilder();
    s.append(q.getMsgCount()).append(' ').append(q.getMsgSize()).append(' ').append(q.getMaxSpan());
    s.append(' ').append(((Map<?, ?>) get(q, "msgTreeMap")).keySet().toString().replace(" ", ""));
    s.append(' ')
        .append(
            ((Map<?, ?>) get(q, "consumingMsgOrderlyTreeMap"))
                .keySet()
                .toString()
                .replace(" ", ""));
    return s.toString();
  }

  static void processQueues() throws Exception {
    Random random = new Random(7);
    for (int run = 0; run < 24; run++) {
      ProcessQueue q = new ProcessQueue();
      boolean ordered = run % 2 == 1;
      long next = random.nextInt(50);
      List<MessageExt> inHand = new ArrayList<>(), all = new ArrayList<>();
      StringBuilder script = new StringBuilder(), results = new StringBuilder();
      for (int step = 0; step < 40; step++) {
        String op, result;
        int choice = random.nextInt(ordered ? 6 : 4);
        if (choice <= 1 || all.isEmpty()) {
          List<MessageExt> batch = new ArrayList<>();
          int count = random.nextInt(4);
          for (int i = 0; i < count; i++) {
            next += 1 + (random.nextInt(4) == 0 ? random.nextInt(5) : 0);
            MessageExt m = message(next, random.nextInt(9));
            MessageAccessor.putProperty(m, "MAX_OFFSET", String.valueOf(next + 10));
            batch.add(m);
          }
          if (!ordered && random.nextInt(6) == 0 && !all.isEmpty())
            batch.add(all.get(all.size() - 1));
          op =
              "put "
                  + batch.stream()
                      .map(m -> m.getQueueOffset() + ":" + m.getBody().length)
                      .collect(Collectors.joining(","));
          result = String.valueOf(q.putMessage(batch));
          all.addAll(batch);
        } else if (!ordered) {
          List<MessageExt> gone = new ArrayList<>();
          int count = 1 + random.nextInt(3);
          for (int i = 0; i < count && !all.isEmpty(); i++)
            gone.add(all.remove(random.nextInt(Math.min(all.size(), 5))));
          if (random.nextInt(8) == 0) gone.add(message(9999, 3));
          op =
              "remove "
                  + gone.stream()
                      .map(m -> m.getQueueOffset() + ":" + m.getBody().length)
                      .collect(Collectors.joining(","));
          result = String.valueOf(q.removeMessage(gone));
        } else if (choice <= 3) {
          int count = 1 + random.nextInt(3);
          inHand = q.takeMessages(count);
          op = "take " + count;
          result =
              inHand.stream()
                  .map(m -> String.valueOf(m.getQueueOffset()))
                  .collect(Collectors.joining(","));
        } else if (choice == 4) {
          boolean any = !((Map<?, ?>) get(q, "consumingMsgOrderlyTreeMap")).isEmpty();
          op = any ? "commit" : "rollback";
          result = "";
          if (any) result = String.valueOf(q.commit());
          else q.rollback();
          inHand = new ArrayList<>();
        } else if (random.nextBoolean()) {
          op =
              "again "
                  + inHand.stream()
                      .map(m -> m.getQueueOffset() + ":" + m.getBody().length)
                      .collect(Collectors.joining(","));
          q.makeMessageToConsumeAgain(inHand);
          inHand = new ArrayList<>();
          result = "";
        } else {
          op = "rollback";
          q.rollback();
          inHand = new ArrayList<>();
          result = "";
        }
        row("process-queue-" + run, op, result + "|" + state(q));
      }
    }
  }

  // -- results

  static void concurrentResults() throws Exception {
    for (boolean sendsBack : new boolean[] {true, false})
      for (String model : new String[] {"CLUSTERING", "BROADCASTING"})
        for (ConsumeConcurrentlyStatus status : ConsumeConcurrentlyStatus.values())
          for (int ackIndex : new int[] {Integer.MAX_VALUE, 3, 2, 1, 0, -1})
            for (int gone : new int[] {-1, 1}) {
              DefaultMQPushConsumer settings = new DefaultMQPushConsumer("g");
              Method setter =
                  Arrays.stream(DefaultMQPushConsumer.class.getMethods())
                      .filter(m -> m.getName().equals("setMessageModel"))
                      .findFirst()
                      .get();
              setter.invoke(settings, Enum.valueOf((Class) setter.getParameterTypes()[0], model));
              DefaultMQPushConsumerImpl impl = consumer(settings);
              List<String> sent = new ArrayList<>();
              ConsumeMessageConcurrentlyService service =
                  new ConsumeMessageConcurrentlyService(impl, (m, c) -> null) {
                    public boolean sendMessageBack(MessageExt m, ConsumeConcurrentlyContext c) {
                      sent.add(String.valueOf(m.getQueueOffset()));
                      return sendsBack;
                    }
                  };
              ProcessQueue q = new ProcessQueue();
              List<MessageExt> messages = new ArrayList<>();
              for (int i = 10; i < 15; i++) messages.add(message(i, 1));
              q.putMessage(messages);
              if (gone >= 0) q.removeMessage(Collections.singletonList(messages.get(gone)));
              MessageQueue mq = new MessageQueue("t", "b", 0);
              List<MessageExt> batch = new ArrayList<>(messages.subList(0, 3));
              Object request =
                  request(
                      service, ".ConsumeMessageConcurrentlyService$ConsumeRequest", batch, q, mq);
              ConsumeConcurrentlyContext context = new ConsumeConcurrentlyContext(mq);
              context.setAckIndex(ackIndex);
              asked.clear();
              call(service, "processConsumeResult", status, context, request);
              service.shutdown(0);
              row(
                  "concurrent-result",
                  sendsBack + ";" + model + ";" + status + ";" + ackIndex + ";" + gone,
                  String.join(",", sent)
                      + "|"
                      + String.join(",", asked)
                      + "|"
                      + state(q)
                      + "|"
                      + messages.stream()
                          .map(m -> "" + m.getReconsumeTimes())
                          .collect(Collectors.joining(",")));
            }
  }

  static Object request(Object service, String name, Object... a) throws Exception {
    Class<?> type = Class.forName("org.apache.rocketmq.client.impl.consumer" + name);
    Constructor<?> make =
        Arrays.stream(type.getDeclaredConstructors())
            .filter(c -> c.getParameterCount() == a.length + 1)
            .findFirst()
            .get();
    make.setAccessible(true);
    Object[] with = new Object[a.length + 1];
    with[0] = service;
    System.arraycopy(a, 0, with, 1, a.length);
    return make.newInstance(with);
  }

  static void orderedResults() throws Exception {
    for (boolean autoCommit : new boolean[] {true, false})
      for (ConsumeOrderlyStatus status : ConsumeOrderlyStatus.values())
        for (int max : new int[] {-1, 2, 0})
          for (boolean sends : new boolean[] {true, false})
            for (int[] times : new int[][] {{0, 0}, {2, 2}, {2, 0}}) {
              DefaultMQPushConsumer settings = new DefaultMQPushConsumer("g");
              settings.setMaxReconsumeTimes(max);
              DefaultMQPushConsumerImpl impl = consumer(settings);
              List<String> sent = new ArrayList<>();
              ConsumeMessageOrderlyService service =
                  new ConsumeMessageOrderlyService(impl, (m, c) -> null) {
                    public boolean sendMessageBack(MessageExt m) {
                      sent.add(String.valueOf(m.getQueueOffset()));
                      return sends;
                    }
                  };
              ProcessQueue q = new ProcessQueue();
              List<MessageExt> messages = new ArrayList<>();
              for (int i = 10; i < 14; i++) messages.add(message(i, 1));
              q.putMessage(messages);
              q.takeMessages(1);
              List<MessageExt> batch = q.takeMessages(2);
              for (int i = 0; i < 2; i++) batch.get(i).setReconsumeTimes(times[i]);
              MessageQueue mq = new MessageQueue("t", "b", 0);
              Object request =
                  request(service, ".ConsumeMessageOrderlyService$ConsumeRequest", q, mq);
              ConsumeOrderlyContext context = new ConsumeOrderlyContext(mq);
              context.setAutoCommit(autoCommit);
              asked.clear();
              Object goesOn =
                  call(service, "processConsumeResult", batch, status, context, request);
              service.shutdown(0);
              row(
                  "ordered-result",
                  autoCommit
                      + ";"
                      + status
                      + ";"
                      + max
                      + ";"
                      + sends
                      + ";"
                      + times[0]
                      + ","
                      + times[1],
                  goesOn
                      + "|"
                      + String.join(",", sent)
                      + "|"
                      + String.join(",", asked)
                      + "|"
                      + state(q)
                      + "|"
                      + messages.stream()
                          .map(m -> "" + m.getReconsumeTimes())
                          .collect(Collectors.joining(",")));
            }
  }

  // -- choosing a queue

  static void choices() throws Exception {
    List<Object> arguments =
        Arrays.asList(
            "",
            "a",
            "order-17",
            "\u4e2d\u6587",
            "\ud83d\ude00",
            0,
            1,
            -1,
            7,
            Integer.MIN_VALUE,
            Integer.MAX_VALUE,
            2147483648L,
            -2147483649L,
            Long.MIN_VALUE,
            Long.MAX_VALUE,
            true,
            false,
            1.5,
            -0.0,
            0.1);
    List<MessageQueue> queues = new ArrayList<>();
    for (int i = 0; i < 7; i++) queues.add(new MessageQueue("t", "b", i));
    for (Object argument : arguments) {
      String text = argument instanceof String ? b64((String) argument) : argument.toString();
      row(
          "hash-selector",
          argument.getClass().getSimpleName() + ";" + text,
          argument.hashCode()
              + ";"
              + new SelectMessageQueueByHash().select(queues, null, argument).getQueueId());
    }
    DefaultMQProducer producer = new DefaultMQProducer("g");
    Object impl = get(producer, "defaultMQProducerImpl");
    MQFaultStrategy strategy = (MQFaultStrategy) get(impl, "mqFaultStrategy");
    for (long latency :
        new long[] {
          0, 49, 50, 99, 100, 549, 550, 1799, 1800, 2999, 3000, 4999, 5000, 10000, 14999, 15000,
          30000, 99999
        }) row("isolation", latency, call(strategy, "computeNotAvailableDuration", latency));
    row("retry-codes", "", new TreeSet<>(producer.getRetryResponseCodes()));
  }

  static void spread() throws Exception {
    Method choose =
        Arrays.stream(MQFaultStrategy.class.getMethods())
            .filter(m -> m.getName().equals("selectOneMessageQueue") && m.getParameterCount() == 3)
            .findFirst()
            .orElse(null);
    if (choose == null) return; // 4.9.8 chooses differently, see the module
    Class<?> info = Class.forName("org.apache.rocketmq.client.impl.producer.TopicPublishInfo");
    for (int faults = 0; faults < 4; faults++)
      for (String last : new String[] {"", "a", "b", "x"})
        for (int start : new int[] {0, 1, Integer.MAX_VALUE - 1}) {
          DefaultMQProducer producer = new DefaultMQProducer("g");
          MQFaultStrategy strategy =
              (MQFaultStrategy) get(get(producer, "defaultMQProducerImpl"), "mqFaultStrategy");
          strategy.setSendLatencyFaultEnable(faults > 0);
          call(strategy, "updateFaultItem", "a", 10L, faults > 1, faults != 3);
          call(strategy, "updateFaultItem", "b", 20L, faults > 2, true);
          Object table = info.getConstructor().newInstance();
          List<MessageQueue> queues = new ArrayList<>();
          for (int i = 0; i < 2; i++)
            for (String b : new String[] {"a", "b", "c"}) queues.add(new MessageQueue("t", b, i));
          if (faults == 3) queues.removeIf(q -> q.getBrokerName().equals("c"));
          call(table, "setMessageQueueList", queues);
          int[] index = {start};
          call(
              table,
              "setSendWhichQueue",
              new ThreadLocalIndex() {
                public int incrementAndGet() {
                  return ++index[0] & Integer.MAX_VALUE;
                }

                public void reset() {
                  index[0] = 100;
                }
              });
          StringBuilder out = new StringBuilder();
          for (int i = 0; i < 6; i++) {
            MessageQueue q =
                (MessageQueue) choose.invoke(strategy, table, last.isEmpty() ? null : last, i == 4);
            out.append(q.getBrokerName()).append(':').append(q.getQueueId()).append(' ');
          }
          row("choose-queue", faults + ";" + last + ";" + start, out.toString().trim());
        }
  }

  // -- settings

  static void defaults(String kind, Object settings) throws Exception {
    for (Class<?> k = settings.getClass(); k != Object.class; k = k.getSuperclass())
      for (Field f : k.getDeclaredFields()) {
        if (Modifier.isStatic(f.getModifiers())) continue;
        f.setAccessible(true);
        Object value = f.get(settings);
        boolean ofThisRun = // address, processors, clock
            f.getName().equals("clientIP")
                || f.getName().equals("clientCallbackExecutorThreads")
                || f.getName().equals("concurrentHeartbeatThreadPoolSize")
                || f.getName().equals("consumeTimestamp");
        boolean plain =
            value == null
                || value instanceof Number
                || value instanceof Boolean
                || value instanceof String
                || value instanceof Enum
                || value instanceof Set;
        row(
            "default-" + kind,
            f.getName(),
            f.getType().getSimpleName() + "=" + (plain && !ofThisRun ? value : "*"));
      }
  }

  static void checks() throws Exception {
    String[][] wrong = {
      {"consumeThreadMin", "0"},
      {"consumeThreadMin", "1001"},
      {"consumeThreadMax", "0"},
      {"consumeThreadMax", "1001"},
      {"consumeThreadMin", "21"},
      {"consumeConcurrentlyMaxSpan", "0"},
      {"consumeConcurrentlyMaxSpan", "65536"},
      {"pullThresholdForQueue", "0"},
      {"pullThresholdForQueue", "65536"},
      {"pullThresholdForTopic", "0"},
      {"pullThresholdForTopic", "6553501"},
      {"pullThresholdSizeForQueue", "0"},
      {"pullThresholdSizeForQueue", "1025"},
      {"pullThresholdSizeForTopic", "0"},
      {"pullThresholdSizeForTopic", "102401"},
      {"pullInterval", "-1"},
      {"pullInterval", "65536"},
      {"consumeMessageBatchMaxSize", "0"},
      {"consumeMessageBatchMaxSize", "1025"},
      {"pullBatchSize", "0"},
      {"pullBatchSize", "1025"},
      {"popInvisibleTime", "4999"},
      {"popInvisibleTime", "300001"},
      {"popBatchNums", "0"},
      {"popBatchNums", "33"},
      {"consumeTimestamp", "yesterday"},
      {"consumerGroup", "DEFAULT_CONSUMER"},
      {"pullInterval", "65535"},
      {"pullThresholdForTopic", "-1"}
    };
    for (String[] one : wrong) {
      DefaultMQPushConsumer settings = new DefaultMQPushConsumer("g");
      settings.setMessageListener((MessageListenerConcurrently) (m, c) -> null);
      try {
        Object old = get(settings, one[0]);
        Object value =
            old instanceof Integer
                ? (Object) Integer.valueOf(one[1])
                : old instanceof Long ? (Object) Long.valueOf(one[1]) : one[1];
        set(settings, one[0], value);
      } catch (NoSuchFieldException e) {
        continue; // pop is 5.x only
      }
      row(
          "check-push",
          one[0] + "=" + one[1],
          result(() -> call(get(settings, "defaultMQPushConsumerImpl"), "checkConfig")));
    }
    DefaultLitePullConsumer lite = new DefaultLitePullConsumer("g");
    set(lite, "consumerTimeoutMillisWhenSuspend", 19999L);
    row(
        "check-lite",
        "consumerTimeoutMillisWhenSuspend=19999",
        result(() -> call(get(lite, "defaultLitePullConsumerImpl"), "checkConfig")));
    row(
        "check-lite",
        "consumerGroup=DEFAULT_CONSUMER",
        result(
            () ->
                call(
                    get(
                        new DefaultLitePullConsumer("DEFAULT_CONSUMER"),
                        "defaultLitePullConsumerImpl"),
                    "checkConfig")));
    row(
        "check-lite",
        "consumeFromWhere=CONSUME_FROM_MIN_OFFSET",
        result(
            () ->
                new DefaultLitePullConsumer("g")
                    .setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET)));
    row(
        "check-producer",
        "producerGroup=DEFAULT_PRODUCER",
        result(
            () ->
                call(
                    get(new DefaultMQProducer("DEFAULT_PRODUCER"), "defaultMQProducerImpl"),
                    "checkConfig")));
  }

  public static void main(String[] a) throws Exception {
    allocations();
    validators();
    firstPositions();
    processQueues();
    concurrentResults();
    orderedResults();
    choices();
    spread();
    defaults("producer", new DefaultMQProducer("g"));
    defaults("push", new DefaultMQPushConsumer("g"));
    defaults("lite", new DefaultLitePullConsumer("g"));
    checks();
    System.exit(0);
  }
}
