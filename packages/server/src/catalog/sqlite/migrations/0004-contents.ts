/**
 * The bytes of small items. Rows are apart from those of media, so that a listing does not read them. `AUTOINCREMENT`: an
 * id is never reused, so a read by id never returns the bytes of another item. There is no foreign key, because it would
 * need an index on media.content_id.
 */
export const contents = `
CREATE TABLE contents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  bytes BLOB NOT NULL
) STRICT;

ALTER TABLE media ADD COLUMN content_id INTEGER;
`
