package com.acme.broker;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.Map;

/**
 * Keeps messages in a queue, and in a table by ID: two holders, neither of which dominates the messages. In leak mode, a message that is
 * delivered but not acknowledged stays in both.
 */
class MessageBroker {
    private static final int MESSAGES = 12_000;

    private final Topic orders = new Topic();
    private final Map<String, Integer> offsets = new HashMap<>();
    private long nextId = 1;

    private MessageBroker() {
        for (int i = 0; i < 15_000; i++) {
            offsets.put("consumer-" + i, i * 10);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < MESSAGES; i++) {
            Message message = new Message(nextId++, new byte[16 + i % 32]);
            orders.publish(message);
            if (!leak) {
                orders.acknowledge(message.id);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MessageBroker broker = new MessageBroker();
        for (int phase = 1; phase <= 3; phase++) {
            broker.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Topic {
    private final LinkedList<Message> queue = new LinkedList<>();
    private final Map<Long, Message> byId = new HashMap<>();

    void publish(Message message) {
        queue.addLast(message);
        byId.put(message.id, message);
    }

    void acknowledge(long id) {
        queue.remove(byId.remove(id));
    }
}

class Message {
    final long id;
    final byte[] payload;

    Message(long id, byte[] payload) {
        this.id = id;
        this.payload = payload;
    }
}
