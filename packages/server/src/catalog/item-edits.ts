import type { Item, ItemEdit, ItemTexts } from './records.ts'

/** The item with the changes of an edit; the same object if nothing changes. */
export function applyEdit(item: Item, edit: ItemEdit): Item {
  const edited = { ...item, ...edit }
  return hasTexts(item, edited) ? item : edited
}

export const hasTexts = (item: ItemTexts, { filename, altText, caption }: ItemTexts): boolean =>
  item.filename === filename && item.altText === altText && item.caption === caption
