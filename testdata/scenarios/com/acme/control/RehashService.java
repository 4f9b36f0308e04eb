package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Keeps about 12,200 members in a hash table. In the third phase they exceed its threshold, and its length doubles. */
class RehashService {
    private static final int[] MEMBERS = {12_100, 12_200, 12_400, 12_300};

    private final Map<Integer, Member> members = new HashMap<>();

    private void work(int phase) {
        for (int i = 0; i < MEMBERS[phase - 1]; i++) {
            members.put(i, new Member("member " + i));
        }
        for (int i = MEMBERS[phase - 1]; i < 13_000; i++) {
            members.remove(i);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RehashService service = new RehashService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Member {
    final String name;

    Member(String name) {
        this.name = name;
    }
}
