import type { Media } from '@mediabucket/client'
import { kindOf } from '../format.ts'

/** Links of items at these addresses as texts to paste, which show a picture and link another file. */
export const linkTexts = {
  markdown: (media: Media, address: string): string =>
    `${isPicture(media) ? '!' : ''}[${escapeMarkdown(nameOf(media) ?? address)}](${address})`,
  html(media: Media, address: string): string {
    const url = escapeHtml(address)
    const name = escapeHtml(nameOf(media) ?? address)
    if (!isPicture(media)) return `<a href="${url}">${name}</a>`
    const { width, height } = media
    const size = width !== null && height !== null ? ` width="${width}" height="${height}"` : ''
    return `<img src="${url}" alt="${name}"${size}>`
  },
}

const isPicture = ({ content_type }: Media): boolean => kindOf(content_type) === 'picture'

const nameOf = (media: Media): string | null =>
  (isPicture(media) && media.alt_text?.replace(/\s+/g, ' ')) || media.filename

/**
 * Entities, because parsers differ in what a backslash escapes: the name of a file must not become a link, a picture or markup of its own.
 * The words begin links that some parsers find in any text.
 */
const escapeMarkdown = (text: string): string =>
  text.replace(/[!-,:-@[-`{-~]|www(?=\.)/gi, (found) =>
    [...found].map((character) => `&#${character.charCodeAt(0)};`).join(''),
  )

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character] ?? '')
