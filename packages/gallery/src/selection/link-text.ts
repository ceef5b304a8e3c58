import type { Media } from '@mediabucket/client'
import { kindOf } from '../format/kind.ts'
import { plainUrl } from '../service/urls.ts'

export const linkForms = ['plain', 'markdown', 'html'] as const
export type LinkForm = (typeof linkForms)[number]

/** The link of an item as text to paste: its URL, or Markdown or HTML that shows a picture and links another file. */
export function linkText(form: LinkForm, media: Media): string {
  const url = plainUrl(media)
  const { filename, alt_text, content_type, width, height } = media
  if (form === 'plain') return url
  const isPicture = kindOf(content_type) === 'picture'
  const name = (isPicture && alt_text?.replace(/\s+/g, ' ')) || (filename ?? url)
  if (form === 'markdown') return `${isPicture ? '!' : ''}[${escapeMarkdown(name)}](${url})`
  if (!isPicture) return `<a href="${escapeHtml(url)}">${escapeHtml(name)}</a>`
  const size = width !== null && height !== null ? ` width="${width}" height="${height}"` : ''
  return `<img src="${escapeHtml(url)}" alt="${escapeHtml(name)}"${size}>`
}

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
