package com.acme.chunks;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Reads uploads into direct buffers, which stay in a list of open chunks after the upload has ended. */
class ChunkServer {
    private static final int UPLOADS = 100;
    private static final int BYTES = 64 << 10;

    private final List<ByteBuffer> open = new ArrayList<>();

    private void work(boolean leak) {
        for (int i = 0; i < UPLOADS; i++) {
            ByteBuffer chunk = ByteBuffer.allocateDirect(BYTES);
            open.add(chunk);
            chunk.putInt(0, i);
            if (!leak && open.size() > UPLOADS) {
                open.remove(0);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ChunkServer server = new ChunkServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}
