package control;

import java.util.Map;

/**
 * What to change in a session, by one save. What is missing stays.
 *
 * @param attributes by name; null removes one
 * @param maxInactiveInterval in seconds
 * @param changeId whether to change the session id
 */
record SessionChange(Map<String, Object> attributes, Integer maxInactiveInterval, Boolean changeId) {

  SessionChange {
    if (attributes == null) attributes = Map.of();
    if (changeId == null) changeId = false;
  }
}
