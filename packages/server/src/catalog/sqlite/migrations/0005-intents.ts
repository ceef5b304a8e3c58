/** Ids of blobs that are being committed. The transaction that adds the item removes its intent. */
export const intents = `
CREATE TABLE intents (
  id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
`
