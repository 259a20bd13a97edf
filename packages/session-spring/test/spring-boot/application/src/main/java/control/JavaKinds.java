package control;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** Attributes of many classes that each serializer can read again. */
class JavaKinds {

  enum Color { RED, GREEN }

  /** A class of the application. */
  public static class Item implements Serializable {

    private static final long serialVersionUID = 1;

    public String name = "tea";
    public int count = 2;
    public List<String> tags = new ArrayList<>(List.of("hot", "green"));
  }

  static Map<String, Object> values() {
    var values = new TreeMap<String, Object>();
    values.put("text", "größer 🍵 \"quoted\"");
    values.put("empty", "");
    values.put("yes", true);
    values.put("integer", 42);
    values.put("long", 1_404_360_000_000L);
    values.put("big", new BigInteger("12345678901234567890"));
    values.put("decimal", new BigDecimal("12.50"));
    values.put("double", 1.5);
    values.put("list", new ArrayList<Object>(List.of("a", 1, 2L, true, new ArrayList<>(List.of(1.5)))));
    values.put("set", new LinkedHashSet<>(List.of("a", "b")));
    values.put("map", new HashMap<>(Map.of("k", "v", "day", LocalDate.of(2024, 1, 2))));
    var instant = Instant.parse("2024-01-02T03:04:05.678Z");
    values.put("times", new HashMap<>(Map.of("at", instant, "for", Duration.ofSeconds(90))));
    values.put("instant", instant);
    values.put("duration", Duration.ofSeconds(90));
    values.put("date", new Date(1_404_360_000_123L));
    values.put("uuid", UUID.fromString("3f2c1a84-7d6e-4b0f-9c55-0123456789ab"));
    values.put("color", Color.GREEN);
    values.put("item", new Item());
    values.put("a:b.c d", "an odd name");
    return values;
  }
}
