/**
 * Texts of items. `edited` is the revision of the bucket at the last change of the row, null for a row that never changed: a backup
 * reads the rows that changed while it ran. `renamed` is 1 if the filename has changed: responses that are in memory have the earlier one.
 */
export const edits = `
ALTER TABLE media ADD COLUMN alt_text TEXT;
ALTER TABLE media ADD COLUMN caption TEXT;
ALTER TABLE media ADD COLUMN edited INTEGER;
ALTER TABLE media ADD COLUMN renamed INTEGER;
CREATE INDEX media_edited ON media (bucket_id, edited) WHERE edited IS NOT NULL;
CREATE INDEX media_renamed ON media (id) WHERE renamed IS NOT NULL;
`
