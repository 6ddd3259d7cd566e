// Prints what the official fastjson reads from texts (Base64, one a line). See README.md.
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Quirks {
  public static void main(String[] x) throws Exception {
    boolean two;
    try {
      Class.forName("com.alibaba.fastjson2.JSON");
      two = true;
    } catch (ClassNotFoundException e) {
      two = false;
    }
    Scanner in = new Scanner(System.in, "UTF-8");
    while (in.hasNextLine()) {
      String b = in.nextLine();
      String t = new String(Base64.getDecoder().decode(b), StandardCharsets.UTF_8);
      String r;
      try {
        Object o = two ? com.alibaba.fastjson2.JSON.parse(t) : com.alibaba.fastjson.JSON.parse(t);
        r =
            two
                ? com.alibaba.fastjson2.JSON.toJSONString(
                    o, com.alibaba.fastjson2.JSONWriter.Feature.WriteMapNullValue)
                : com.alibaba.fastjson.JSON.toJSONString(
                    o,
                    com.alibaba.fastjson.serializer.SerializerFeature.WriteMapNullValue,
                    com.alibaba.fastjson.serializer.SerializerFeature
                        .DisableCircularReferenceDetect,
                    com.alibaba.fastjson.serializer.SerializerFeature.BrowserSecure);
      } catch (Throwable e) {
        r = "!" + e.getClass().getSimpleName();
      }
      System.out.println(b + "\t" + r);
    }
  }
}
