/** The bytes of unfinished uploads that are in a remote store, as parts, or too few for a part, as pieces. */
export const uploadParts = `
ALTER TABLE uploads ADD COLUMN multipart TEXT;
CREATE TABLE upload_parts (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE upload_pieces (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT;
`
