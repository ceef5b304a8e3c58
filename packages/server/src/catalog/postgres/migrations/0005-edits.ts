/** Texts of items. `renamed` is 1 if the filename has changed: responses that are in memory have the earlier one. */
export const edits = `
ALTER TABLE media ADD COLUMN alt_text text;
ALTER TABLE media ADD COLUMN caption text;
ALTER TABLE media ADD COLUMN renamed int4;
CREATE INDEX media_renamed ON media (id) WHERE renamed IS NOT NULL;
`
