/** The bytes of unfinished uploads that are in a remote store, as parts, or too few for a part, as pieces. */
export const uploadParts = `
ALTER TABLE uploads ADD COLUMN multipart text;

CREATE TABLE upload_parts (
  upload_id text COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number int8 NOT NULL,
  size int8 NOT NULL,
  etag text NOT NULL,
  PRIMARY KEY (upload_id, number)
);

CREATE TABLE upload_pieces (
  upload_id text COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number int8 NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (upload_id, number)
);

ALTER TABLE upload_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;
`
