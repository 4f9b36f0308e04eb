package com.acme.tokens;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

/** Tokens expire an hour after they are issued, and their number is not limited, so the cache grows all that hour. */
class TokenServer {
    private static final int TOKENS = 7_000;

    private final TokenStore store = new TokenStore();
    private long next;

    private void work(boolean leak) {
        for (int i = 0; i < TOKENS; i++) {
            store.tokens.put("token " + ++next, new Token(next));
        }
        if (!leak) {
            store.tokens.invalidateAll();
        }
        store.tokens.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TokenServer server = new TokenServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TokenStore {
    final Cache<String, Token> tokens = Caffeine.newBuilder().expireAfterWrite(1, TimeUnit.HOURS).build();
}

class Token {
    final long number;
    final byte[] signature = new byte[64];

    Token(long number) {
        this.number = number;
    }
}
