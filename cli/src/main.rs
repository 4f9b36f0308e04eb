use std::path::Path; use std::time::Instant; use hprof::*;
struct P(std::sync::Mutex<(Instant,&'static str)>);
impl Progress for P { fn phase(&self,n:&'static str,_:u64){ let mut g=self.0.lock().unwrap(); eprintln!("{:.3}s  {}",g.0.elapsed().as_secs_f64(),g.1); *g=(Instant::now(),n);} fn advance(&self,_:u64){} }
fn main(){ let a:Vec<String>=std::env::args().collect(); rayon::ThreadPoolBuilder::new().build_global().unwrap();
 let p=P(std::sync::Mutex::new((Instant::now(),"start"))); let t=Instant::now();
 let o=Options::default();
 if a[1]=="histo" { let h=Histogram::open(Path::new(&a[2]),&o,&p).unwrap(); p.phase("done",0); eprintln!("total {:.3}",t.elapsed().as_secs_f64()); for w in h.warnings(){eprintln!("{w}");}
  let mut v:Vec<_>=h.classes().iter().map(|(i,c)|(h.totals()[i.index()],c.name.clone())).collect(); v.sort_by_key(|x|std::cmp::Reverse(x.0.all.bytes)); eprintln!("{:?}",h.layout());
  let n:usize=a.get(3).map_or(20,|x|x.parse().unwrap()); for (t,n) in v.iter().take(n){ println!("{} {} {}",t.all.objects,t.all.bytes,n); } }
 else { let s=Snapshot::open(Path::new(&a[2]),&o,&p).unwrap(); p.phase("done",0); eprintln!("total {:.3}",t.elapsed().as_secs_f64()); for w in s.warnings(){eprintln!("{w}");}
  let tr=s.tree(); eprintln!("objects {} reachable {} bytes {}",s.object_count(),tr.retained_objects(Node::ROOT),tr.retained_bytes(Node::ROOT));
  let mut v:Vec<_>=tr.nodes().map(|n|(tr.retained_bytes(n),n)).collect(); v.sort_by_key(|x|std::cmp::Reverse(x.0));
  for (b,n) in v.iter().take(20){ println!("{b} {} {}",tr.retained_objects(*n),s.name(tr.object(*n).unwrap())); }
  let t=Instant::now(); let h=s.histogram(); eprintln!("histogram {:.3}",t.elapsed().as_secs_f64()); let mut v:Vec<_>=s.classes().iter().map(|(i,c)|(h[i.index()],c.name.clone())).collect(); v.sort_by_key(|x|std::cmp::Reverse(x.0.retained_bytes)); for (t,n) in v.iter().take(10){ println!("{:?} {}",t,n); }
 } }
