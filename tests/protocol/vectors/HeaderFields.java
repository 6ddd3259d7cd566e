// How the official reader takes the text of a header field, by type. See README.md.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

public class HeaderFields {
  static Class<?> header(String name) throws Exception {
    for (String at : List.of("org.apache.rocketmq.common.protocol.header.", "org.apache.rocketmq.remoting.protocol.header."))
      try {
        return Class.forName(at + name);
      } catch (ClassNotFoundException e) {
        // the other generation's package
      }
    throw new ClassNotFoundException(name);
  }

  static Object get(Object header, String name) throws Exception {
    var field = header.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(header);
  }

  public static void main(String[] a) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    for (String line; (line = in.readLine()) != null; ) {
      String[] columns = line.split("\t", -1); // class, field, text
      RemotingCommand command = RemotingCommand.createRequestCommand(1, null);
      HashMap<String, String> fields = new HashMap<>();
      fields.put("unknown", "x");
      if (!columns[2].equals("absent")) fields.put(columns[1], columns[2]);
      command.setExtFields(fields);
      String seen;
      try {
        seen = String.valueOf(get(command.decodeCommandCustomHeader((Class<? extends CommandCustomHeader>) header(columns[0])), columns[1]));
      } catch (Throwable e) {
        seen = "!";
      }
      out.println("field\t" + columns[0] + "\t" + columns[1] + "\t" + columns[2] + "\t" + seen);
    }
  }
}
