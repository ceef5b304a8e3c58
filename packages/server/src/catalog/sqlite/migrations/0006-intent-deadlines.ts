/** Milliseconds since 1970 after which a sweep may remove the blob of an intent. Intents of earlier versions have expired. */
export const intentDeadlines = `
ALTER TABLE intents ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;
`
