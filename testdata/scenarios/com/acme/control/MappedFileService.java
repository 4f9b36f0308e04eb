package com.acme.control;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/** Maps a journal into memory. The journal grows in its file, not in the heap: it has four parts, which are larger in each phase. */
class MappedFileService {
    private static final int PARTS = 4;

    private final MappedJournal journal = new MappedJournal();
    private final Path file;

    private MappedFileService() throws IOException {
        file = Files.createTempFile("journal", ".log");
        file.toFile().deleteOnExit();
    }

    private void work(int phase) throws IOException {
        long size = phase * (4L << 20);
        try (RandomAccessFile data = new RandomAccessFile(file.toFile(), "rw")) {
            data.setLength(size * PARTS);
            for (int part = 0; part < PARTS; part++) {
                MappedByteBuffer mapped =
                        data.getChannel().map(FileChannel.MapMode.READ_WRITE, part * size, size);
                mapped.putLong(0, phase);
                journal.parts[part] = new JournalPart(mapped);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MappedFileService service = new MappedFileService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class MappedJournal {
    final JournalPart[] parts = new JournalPart[4];
}

class JournalPart {
    final MappedByteBuffer mapped;

    JournalPart(MappedByteBuffer mapped) {
        this.mapped = mapped;
    }
}
