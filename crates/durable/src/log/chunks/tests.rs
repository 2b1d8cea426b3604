use super::Chunk;

#[test]
fn runs_of_removed_items_are_joined() {
    let mut chunk = Chunk::new(10);
    chunk.remove(12..14);
    chunk.remove(17..18);
    assert_eq!(chunk.gone, [12..14, 17..18]);
    let gone: Vec<_> = (10..20).filter(|id| chunk.is_gone(*id)).collect();
    assert_eq!(gone, [12, 13, 17]);
    chunk.remove(10..11);
    chunk.remove(14..17);
    assert_eq!(chunk.gone, [10..11, 12..18]);
    chunk.remove(12..13);
    chunk.remove(19..20);
    assert_eq!(chunk.gone, [10..11, 12..18, 19..20]);
    assert!(!chunk.is_empty());
    chunk.remove(10..20);
    assert_eq!((chunk.gone.len(), chunk.gone[0].clone()), (1, 10..20));
    assert!(chunk.is_empty());
}
