/** Whether the metadata of pictures and videos is removed when they are stored: 0 or 1. */
export const removeMetadata = `
ALTER TABLE buckets ADD COLUMN remove_metadata int4 NOT NULL DEFAULT 0;
`
