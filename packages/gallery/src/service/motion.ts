import type { Media } from '@mediabucket/client'

/** Whether the person asked for less motion: then nothing moves until a button plays it. */
export const wantsStillness = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches

/** Whether pictures of a type, and their variants, may move. */
export const mayMove = (contentType: string): boolean =>
  /^image\/(?:gif|webp|a?png|avif|svg\+xml)$/.test(contentType)

/** Whether a picture is drawn as its first frame. */
export const standsStill = ({ content_type }: Pick<Media, 'content_type'>): boolean =>
  mayMove(content_type) && wantsStillness()
