import type { Page } from '../src/index.ts'

const path = 'https://media.example.org/api/media'
const at = (page: number) => `${path}?page=${page}`

/** A valid page, for tests of other things. */
export const pageOf = (current: number, last: number, changes: Partial<Page> = {}): Page => ({
  current_page: current,
  data: [`https://media.example.org/media/item-${current}.jpg`],
  first_page_url: at(1),
  from: current * 10 - 9,
  last_page: last,
  last_page_url: at(last),
  links: [
    { url: current > 1 ? at(current - 1) : null, label: '&laquo; Previous', active: false },
    { url: at(1), label: '1', active: current === 1 },
    { url: current < last ? at(current + 1) : null, label: 'Next &raquo;', active: false },
  ],
  next_page_url: current < last ? at(current + 1) : null,
  path,
  per_page: 10,
  prev_page_url: current > 1 ? at(current - 1) : null,
  to: current * 10 - 9,
  total: last * 10 - 9,
  ...changes,
})
