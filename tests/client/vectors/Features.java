// Prints texts the official client makes: names with namespaces, signatures, traces, receipts. See README.md.
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.acl.common.*;
import org.apache.rocketmq.client.AccessChannel;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.trace.*;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.producer.RecallMessageHandle;
import org.apache.rocketmq.common.utils.NameServerAddressUtils;
import org.apache.rocketmq.remoting.protocol.NamespaceUtil;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;

public class Features {
  static String b64(Object text) {
    return text == null ? "null" : Base64.getEncoder().encodeToString(text.toString().getBytes(StandardCharsets.UTF_8));
  }

  static void row(String rule, Object result, Object... inputs) {
    StringJoiner joined = new StringJoiner(" ");
    for (Object input : inputs) joined.add(b64(input));
    System.out.println(rule + "\t" + joined + "\t" + b64(result));
  }

  public static void main(String[] args) throws Exception {
    String[] names = {
      "Orders", "N%Orders", "M%Orders", "%RETRY%g", "%RETRY%N%g", "%DLQ%g", "%DLQ%N%g", "%RETRY%M%g", "RMQ_SYS_TRACE_TOPIC",
      "TBW102", "rmq_sys_x", "CID_RMQ_SYS_TRANS", "a%b%c", "N", "N%", "%x", "SCHEDULE_TOPIC_XXXX", "DefaultCluster_REPLY_TOPIC"
    };
    for (String name : names) {
      for (String namespace : new String[] {"N", "MQ_INST_1_2", ""}) {
        row("wrap", NamespaceUtil.wrapNamespace(namespace, name), namespace, name);
        row("unwrap", NamespaceUtil.withoutNamespace(name, namespace), namespace, name);
      }
      row("without", NamespaceUtil.withoutNamespace(name), name);
    }
    for (String endpoint : new String[] {"http://MQ_INST_123_abc.example:80", "MQ_INST_123_abc.example:80", "http://host:9876",
        "MQ_INST_1.host:1", "xMQ_INST_1_2.host:1", "127.0.0.1:9876"}) {
      boolean valid = NameServerAddressUtils.validateInstanceEndpoint(endpoint);
      row("endpoint", valid ? NameServerAddressUtils.parseInstanceIdFromEndpoint(endpoint) : null, endpoint);
    }
    sign("ak", "sk", null, null, "topic", "T", "queueId", "0");
    sign("ak", "sk", "token", "hello".getBytes(), "b", "2", "a", "1", "Z", "3", "Signature", "old");
    sign("user", "\u00e4\u00f6-secret", null, new byte[] {0, 1, (byte) 255}, "topic", "\u4e2d\u6587", "_x", "");
    traces();
    row("handle", "T broker-a 1700000000001 7F0000010A", RecallMessageHandle.HandleV1.buildHandle("T", "broker-a", "1700000000001", "7F0000010A"));
    row("receipt", ExtraInfoUtil.buildExtraInfo(100, 1700000000000L, 60000, 3, "T", "broker-a", 2, 117), "0");
    row("receipt", ExtraInfoUtil.buildExtraInfo(100, 1700000000000L, 60000, 3, "%RETRY%g_T", "broker-a", 2, 117), "1");
    row("receipt", ExtraInfoUtil.buildExtraInfo(100, 1700000000000L, 60000, 3, "%RETRY%g+T", "broker-a", 2, 117), "2");
    for (String flag : new String[] {"0", "1", "2"}) {
      String info = "100 1700000000000 60000 3 " + flag + " broker-a 2 117";
      row("real-topic", ExtraInfoUtil.getRealTopic(ExtraInfoUtil.split(info), "T", "g"), info);
    }
    StringBuilder starts = new StringBuilder();
    StringBuilder offsets = new StringBuilder();
    ExtraInfoUtil.buildStartOffsetInfo(starts, "T", 0, 5);
    ExtraInfoUtil.buildStartOffsetInfo(starts, "%RETRY%g_T", 0, 9);
    ExtraInfoUtil.buildMsgOffsetInfo(offsets, "T", 0, new ArrayList<>(List.of(5L, 6L, 8L)));
    ExtraInfoUtil.buildMsgOffsetInfo(offsets, "%RETRY%g_T", 0, new ArrayList<>(List.of(9L)));
    row("start-offsets", starts, "");
    row("message-offsets", offsets, "");
  }

  static void sign(String accessKey, String secretKey, String token, byte[] body, String... fields) {
    RemotingCommand command = RemotingCommand.createRequestCommand(11, null);
    for (int i = 0; i < fields.length; i += 2) command.addExtField(fields[i], fields[i + 1]);
    command.setBody(body);
    SessionCredentials credentials = token == null
      ? new SessionCredentials(accessKey, secretKey) : new SessionCredentials(accessKey, secretKey, token);
    new AclClientRPCHook(credentials).doBeforeRequest("", command);
    List<Object> inputs = new ArrayList<>(List.of(accessKey, secretKey));
    inputs.add(token);
    inputs.add(body == null ? null : Base64.getEncoder().encodeToString(body));
    inputs.addAll(List.of(fields));
    row("sign", command.getExtFields().get("Signature"), inputs.toArray());
  }

  static TraceContext context(TraceType type, TraceBean... beans) {
    TraceContext context = new TraceContext();
    context.setTraceType(type);
    context.setTimeStamp(1700000000000L);
    context.setRegionId("DefaultRegion");
    context.setGroupName("group");
    context.setCostTime(12);
    context.setSuccess(true);
    context.setRequestId("REQUEST");
    context.setContextCode(4);
    context.setAccessChannel(AccessChannel.LOCAL);
    context.setTraceBeans(Arrays.asList(beans));
    return context;
  }

  static TraceBean bean(String id, String tags, String keys) {
    TraceBean bean = new TraceBean();
    bean.setTopic("T");
    bean.setMsgId(id);
    bean.setTags(tags);
    bean.setKeys(keys);
    bean.setStoreHost("127.0.0.1:10911");
    bean.setBodyLength(7);
    bean.setMsgType(MessageType.Delay_Msg);
    bean.setOffsetMsgId("OFFSET");
    bean.setRetryTimes(2);
    bean.setTransactionId("TRANSACTION");
    bean.setTransactionState(LocalTransactionState.COMMIT_MESSAGE);
    bean.setFromTransactionCheck(true);
    return bean;
  }

  static void trace(String name, TraceContext context) {
    TraceTransferBean made = TraceDataEncoder.encoderFromContextBean(context);
    row("trace", made.getTransData(), name, String.join(" ", new TreeSet<>(made.getTransKey())));
  }

  static void traces() {
    for (TraceType type : TraceType.values()) trace(type.name(), context(type, bean("A", "tag", "k1 k2")));
    trace("SubBefore two", context(TraceType.SubBefore, bean("A", null, null), bean("B", "t", "k")));
    trace("SubAfter two", context(TraceType.SubAfter, bean("A", null, null), bean("B", "t", "k")));
    TraceContext cloud = context(TraceType.SubAfter, bean("A", "tag", "k1 k2"));
    cloud.setAccessChannel(AccessChannel.CLOUD);
    trace("SubAfter cloud", cloud);
    TraceContext failed = context(TraceType.Pub, bean("A", null, null));
    failed.setSuccess(false);
    trace("Pub failed", failed);
  }
}
