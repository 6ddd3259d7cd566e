// Prints what the official programs make of names, attributes, tag expressions, registrations and compression. See README.md.
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;

public class Rules {
  static String B(byte[] b) {
    return Base64.getEncoder().encodeToString(b);
  }

  static Class<?> c(String... names) throws Exception {
    for (String n : names)
      try {
        return Class.forName(n);
      } catch (ClassNotFoundException e) {
      }
    throw new ClassNotFoundException(names[0]);
  }

  static Object call(Object o, String m, Object... a) throws Exception {
    Class<?> k = o instanceof Class ? (Class<?>) o : o.getClass();
    for (Method x : k.getMethods())
      if (x.getName().equals(m) && x.getParameterCount() == a.length) {
        try {
          x.setAccessible(true);
          return x.invoke(o instanceof Class ? null : o, a);
        } catch (IllegalArgumentException e) {
        }
      }
    throw new NoSuchMethodException(m);
  }

  static String cause(Throwable t) {
    while (t instanceof InvocationTargetException) t = t.getCause();
    return t.getMessage();
  }

  public static void main(String[] x) throws Exception {
    boolean five;
    try {
      Class.forName("org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody");
      five = true;
    } catch (ClassNotFoundException e) {
      five = false;
    }
    String P =
        five ? "org.apache.rocketmq.remoting.protocol." : "org.apache.rocketmq.common.protocol.";
    // registration
    Object body = c(P + "body.RegisterBrokerBody").getConstructor().newInstance();
    Object wrapper = call(body, "getTopicConfigSerializeWrapper");
    Object dv = call(wrapper, "getDataVersion");
    call(dv, "setTimestamp", 1700000000123L);
    call(dv, "setCounter", new java.util.concurrent.atomic.AtomicLong(42));
    Map table = (Map) call(wrapper, "getTopicConfigTable");
    for (String n : new String[] {"orders", "%RETRY%g"}) {
      Object tc =
          c("org.apache.rocketmq.common.TopicConfig")
              .getConstructor(String.class, int.class, int.class, int.class)
              .newInstance(n, 8, 4, 6);
      if (five && n.equals("orders")) {
        Map m = new HashMap();
        m.put("message.type", "FIFO");
        call(tc, "setAttributes", m);
      }
      System.out.println("topic-text\t" + n + "\t" + call(tc, "encode"));
      table.put(n, tc);
    }
    call(body, "setFilterServerList", Arrays.asList("10.0.0.1:1", "10.0.0.2:2"));
    if (five) {
      Object info =
          c(P + "statictopic.TopicQueueMappingInfo")
              .getConstructor(String.class, int.class, String.class, long.class)
              .newInstance("orders", 8, "broker-a", 3L);
      ((Map) call(wrapper, "getTopicQueueMappingInfoMap")).put("orders", info);
    }
    System.out.println("registration\tcompressed\t" + B((byte[]) call(body, "encode", true)));
    // compression
    StringBuilder sb = new StringBuilder();
    for (int i = 0; i < 300; i++) sb.append("order ").append(i * 7919 % 1000).append(' ');
    byte[] src = sb.toString().getBytes(StandardCharsets.UTF_8);
    for (String t : new String[] {"LZ4", "ZSTD", "ZLIB"}) {
      Class<?> ct = c("org.apache.rocketmq.common.compression.CompressionType");
      Object type = Enum.valueOf((Class) ct, t);
      Object comp =
          call(
              c("org.apache.rocketmq.common.compression.CompressorFactory"), "getCompressor", type);
      System.out.println(
          "compression\t"
              + t
              + " "
              + call(type, "getCompressionFlag")
              + "\t"
              + B((byte[]) call(comp, "compress", src, 5)));
    }
    // subscriptions
    Class<?> api = c(P + "filter.FilterAPI", "org.apache.rocketmq.common.filter.FilterAPI");
    for (String e :
        new String[] {
          "*",
          "",
          "TagA",
          "TagA||TagB",
          " TagA || TagB |||| \u00a0x",
          "||",
          "|",
          "\u6807\u7b7e || \ud83d\ude00",
          "a*b",
          " ",
          "|| ||"
        }) {
      String r;
      try {
        Object sd = call(api, "buildSubscriptionData", "t", e);
        call(sd, "setSubVersion", 1L);
        r = BodyShapes.json(sd, false);
      } catch (Throwable t) {
        r = "!" + cause(t);
      }
      System.out.println("subscription\t" + B(e.getBytes(StandardCharsets.UTF_8)) + "\t" + r);
    }
    // names
    if (five) {
      Class<?> v = c("org.apache.rocketmq.common.topic.TopicValidator");
      String l127 = String.join("", Collections.nCopies(127, "a")),
          l120 = l127.substring(7),
          l255 = "%RETRY%" + l127 + l127.substring(6);
      for (String n :
          new String[] {
            "",
            "  ",
            "ok-_%|9",
            "a b",
            "a.b",
            "\u4e2d",
            "a\n",
            l127,
            l127 + "a",
            l120,
            l120 + "a",
            l255,
            l255 + "a",
            "%DLQ%" + l127 + "aaa",
            "@",
            "a+b",
            "/x"
          }) {
        Object r = call(v, "validateTopic", n), g = call(v, "validateGroup", n);
        System.out.println(
            "topic-name\t" + B(n.getBytes(StandardCharsets.UTF_8)) + "\t" + call(r, "getRemark"));
        System.out.println(
            "group-name\t" + B(n.getBytes(StandardCharsets.UTF_8)) + "\t" + call(g, "getRemark"));
      }
      // attributes
      Class<?> parser = c("org.apache.rocketmq.common.attribute.AttributeParser"),
          util = c("org.apache.rocketmq.common.attribute.AttributeUtil"),
          im = c("com.google.common.collect.ImmutableMap");
      Map all = (Map) c("org.apache.rocketmq.common.TopicAttributes").getField("ALL").get(null),
          galls =
              (Map)
                  c("org.apache.rocketmq.common.SubscriptionGroupAttributes")
                      .getField("ALL")
                      .get(null);
      String[][] cases = {
        {"c", "+message.type=FIFO"},
        {"c", "+message.type=NOPE"},
        {"c", "-message.type"},
        {"c", "message.type=FIFO"},
        {"c", "+queue.type=BatchCQ,+cleanup.policy=COMPACTION"},
        {"u", "+queue.type=BatchCQ"},
        {"u", "+message.type=DELAY"},
        {"u", "-message.type"},
        {"u", "-reserve.time"},
        {"u", "+reserve.time=-1"},
        {"u", "+reserve.time=-2"},
        {"u", "+reserve.time=x"},
        {"u", "+no.such=1"},
        {"c", "+no.such=1"},
        {"u", "+message.type=FIFO,-message.type"},
        {"u", "+message.type=FIFO,+message.type=DELAY"},
        {"c", "++x=1"},
        {"c", "+a-b=1"},
        {"c", "+=1"},
        {"c", ""},
        {"c", ","},
        {"c", "+message.type=FIFO,"},
        {"c", "+message.type=FIFO=x"},
        {"c", "+lite.topic.expiration=43201"},
        {"c", "+lite.topic.expiration=43200"},
        {"u", "-cleanup.policy"},
        {"c", "x"},
        {"c", "x-"},
        {"c", "a+=1"},
        {"g", "+priority.factor=50"},
        {"g", "+priority.factor=101"},
        {"g", "+lite.sub.reset.offset.exclusive=TRUE"},
        {"g", "+lite.sub.reset.offset.exclusive=1"},
        {"g", "+lite.bind.topic=t"},
        {"g", "+lite.sub.client.max.event.cnt=9"}
      };
      for (String[] k : cases) {
        String r;
        try {
          Map changes = (Map) call(parser, "parseToMap", k[1]);
          Map cur = new TreeMap();
          if (k[0].equals("u")) {
            cur.put("message.type", "NORMAL");
            cur.put("cleanup.policy", "DELETE");
          }
          Object imc = im.getMethod("copyOf", Map.class).invoke(null, cur),
              imn = im.getMethod("copyOf", Map.class).invoke(null, changes);
          r =
              new TreeMap(
                      (Map)
                          call(
                              util,
                              "alterCurrentAttributes",
                              !k[0].equals("u"),
                              k[0].equals("g") ? galls : all,
                              imc,
                              imn))
                  .toString();
        } catch (Throwable t) {
          while (t instanceof InvocationTargetException) t = t.getCause();
          r = "!" + t.getClass().getSimpleName() + ": " + t.getMessage();
        }
        System.out.println("attributes\t" + k[0] + " " + k[1] + "\t" + r);
      }
      // fingerprint
      String hb =
          "{\"clientID\":\"1.2.3.4@5\",\"consumerDataSet\":[{\"consumeFromWhere\":\"CONSUME_FROM_LAST_OFFSET\",\"consumeType\":\"CONSUME_PASSIVELY\",\"groupName\":\"g\",\"messageModel\":\"CLUSTERING\",\"subscriptionDataSet\":[{\"classFilterMode\":false,\"codeSet\":[],\"expressionType\":\"TAG\",\"subString\":\"*\",\"subVersion\":17,\"tagsSet\":[],\"topic\":\"t\"}],\"unitMode\":false}],\"heartbeatFingerprint\":0,\"producerDataSet\":[{\"groupName\":\"p\"}],\"withoutSub\":false}";
      Class<?> rs = c(P + "RemotingSerializable");
      Object h =
          rs.getMethod("fromJson", String.class, Class.class)
              .invoke(null, hb, c(P + "heartbeat.HeartbeatData"));
      System.out.println("fingerprint\t" + hb + "\t" + call(h, "computeHeartbeatFingerprint"));
    }
  }
}
