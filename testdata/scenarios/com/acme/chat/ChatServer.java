package com.acme.chat;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Has 1,500 rooms, each with a list of messages. In leak mode, each list grows by a little. */
class ChatServer {
    private static final int ROOMS = 1_500;
    private static final int MESSAGES = 15_000;

    private final List<Room> rooms = new ArrayList<>();
    private final Random random = new Random(3);

    private ChatServer() {
        for (int i = 0; i < ROOMS; i++) {
            rooms.add(new Room("room " + i));
        }
    }

    private void talk(boolean leak) {
        for (int i = 0; i < MESSAGES; i++) {
            Room room = rooms.get(random.nextInt(ROOMS));
            room.history.add(new Message(System.nanoTime(), "message " + i));
            if (!leak) {
                room.history.clear();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ChatServer server = new ChatServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.talk(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Room {
    final String name;
    final List<Message> history = new ArrayList<>();

    Room(String name) {
        this.name = name;
    }
}

class Message {
    final long sent;
    final String text;

    Message(long sent, String text) {
        this.sent = sent;
        this.text = text;
    }
}
