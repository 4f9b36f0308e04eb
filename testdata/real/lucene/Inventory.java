import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Writes one document of a Lucene index again and again. Each queue of deletions keeps the previous one. */
class Inventory {
    private static final int UPDATES = 1_500;

    private final IndexWriter index;
    private int stock;

    private Inventory() throws Exception {
        index = new IndexWriter(new ByteBuffersDirectory(), new IndexWriterConfig().setMergeScheduler(new SerialMergeScheduler()));
    }

    private void work() throws Exception {
        for (int i = 0; i < UPDATES; i++) {
            Document chair = new Document();
            chair.add(new StringField("name", "chair", Field.Store.YES));
            chair.add(new StringField("stock", "" + ++stock, Field.Store.YES));
            index.updateDocument(new Term("name", "chair"), chair);
            index.flush();
        }
    }

    public static void main(String[] args) throws Exception {
        Inventory program = new Inventory();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
