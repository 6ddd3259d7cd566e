// Feeds byte streams to the official frame decoder and prints what came out. See README.md.
import com.alibaba.fastjson.JSON;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.remoting.netty.NettyDecoder;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

public class Frames {
  static byte[] bytes(String text) {
    if (text.startsWith("length ")) { // a frame of that length whose body is all zeros
      int length = Integer.parseInt(text.substring(7));
      byte[] header = "{\"code\":1,\"opaque\":9}".getBytes(StandardCharsets.UTF_8);
      byte[] frame = new byte[4 + length];
      java.nio.ByteBuffer.wrap(frame).putInt(length).putInt(header.length).put(header);
      return frame;
    }
    byte[] out = new byte[text.length() / 2];
    for (int i = 0; i < out.length; i++)
      out[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
    return out;
  }

  static Map<String, Object> shown(RemotingCommand c) {
    Map<String, Object> m = new TreeMap<>();
    m.put("code", c.getCode());
    m.put("opaque", c.getOpaque());
    m.put("flag", c.getFlag());
    m.put("version", c.getVersion());
    m.put("language", c.getLanguage() == null ? null : c.getLanguage().name());
    m.put("remark", c.getRemark());
    if (c.getExtFields() != null) {
      Map<String, String> fields = new TreeMap<>();
      c.getExtFields().forEach((k, v) -> { if (k != null && v != null) fields.put(k, v); });
      m.put("fields", fields);
    }
    byte[] body = c.getBody();
    if (body != null) m.put("body", body.length > 64 ? body.length : new String(body, StandardCharsets.ISO_8859_1));
    return m;
  }

  public static void main(String[] a) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    for (String line; (line = in.readLine()) != null; ) {
      String[] columns = line.split("\t");
      EmbeddedChannel channel = new EmbeddedChannel(new NettyDecoder());
      String broken = "";
      List<Object> commands = new ArrayList<>();
      try {
        channel.writeInbound(Unpooled.wrappedBuffer(bytes(columns[1])));
      } catch (Throwable e) {
        broken = "!";
      }
      channel.runPendingTasks();
      if (!channel.isOpen()) broken = "!";
      for (Object o; (o = channel.readInbound()) != null; )
        commands.add(o instanceof RemotingCommand ? shown((RemotingCommand) o) : o.getClass().getSimpleName());
      out.println("vector\t" + columns[0] + "\t" + columns[1] + "\t" + JSON.toJSONString(commands) + "\t" + broken);
    }
  }
}
