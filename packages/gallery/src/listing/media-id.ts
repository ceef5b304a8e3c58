/** The id in the URL of an item; its host may be another than the page's own, and counts for nothing. */
export const mediaIdOf = (url: string): string => /\/media\/([^/.?#]+)(?:\.[^/?#]*)?$/.exec(url)?.[1] ?? ''
