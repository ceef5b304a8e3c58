import { maxSearchLength } from '@mediabucket/client/rules'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Choice, IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { noChoice, wordsOf } from '../router.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'
import { isFiltered, keyOf, orderBy } from './shown-list.ts'

/** A search begins when nothing was typed for this time. Milliseconds. */
const searchDelay = 200

/** Controls that select the items of the timeline. */
export function Filters() {
  const { router, shownList } = useGallery()
  const { kind, time, name, labels } = router.list.value
  const input = useRef<HTMLInputElement>(null)
  /** Whether small screens show the choices. */
  const [open, setOpen] = useState(kind !== noChoice.kind || time !== noChoice.time || labels.length > 0)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  /** The words that this field has searched for. Others come from the address. */
  const searched = useRef('')
  // Before a person types.
  useLayoutEffect(() => {
    if (input.current && name !== searched.current) input.current.value = name
    searched.current = name
  }, [name])
  useEffect(() => () => clearTimeout(timer.current), [])
  const search = (words: string) => {
    const { name } = router.list.peek()
    if (words === name) return
    searched.current = words
    // While a person types, Back does not lead to each part of the text.
    shownList.choose({ name: words }, name !== '' && words !== '')
  }
  return (
    <search class={open ? 'filters open' : 'filters'} aria-label={strings.filter.label}>
      <div class="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          autocomplete="off"
          maxLength={maxSearchLength}
          aria-label={strings.filter.search}
          placeholder={strings.filter.search}
          onInput={({ currentTarget }) => {
            clearTimeout(timer.current)
            const words = wordsOf(currentTarget.value)
            timer.current = setTimeout(() => search(words), searchDelay)
          }}
        />
      </div>
      <button
        type="button"
        class="icon-button filter-switch"
        aria-label={strings.filter.label}
        title={strings.filter.label}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="filter" />
      </button>
      <Choice
        quiet
        label={strings.filter.kind}
        options={strings.filter.kinds}
        value={kind}
        onChoose={(chosen) => shownList.choose({ kind: chosen })}
      />
      <Choice
        quiet
        label={strings.filter.time}
        options={strings.filter.times}
        value={time}
        onChoose={(chosen) => shownList.choose({ time: chosen })}
      />
      <OrderChoice />
      <LabelFilter />
      {isFiltered(shownList.filter.value) && (
        <button
          type="button"
          class="button small quiet"
          onClick={() => {
            clearTimeout(timer.current)
            if (input.current) input.current.value = ''
            searched.current = ''
            const { kind, time, name, labels } = noChoice
            shownList.choose({ kind, time, name, labels })
          }}
        >
          <Icon name="close" size={16} />
          {strings.filter.clear}
        </button>
      )}
    </search>
  )
}

/** Chooses the time, or the name, by which the list is ordered and grouped. */
function OrderChoice() {
  const { shownList } = useGallery()
  const order = shownList.order.value
  const chosen = keyOf(order)
  return (
    <Choice
      quiet
      label={strings.timeline.orderBy}
      options={strings.timeline.orderKeys}
      value={chosen}
      onChoose={(next) => {
        if (next !== chosen) shownList.choose({ order: orderBy(next, order) })
      }}
    />
  )
}

/** Shows and removes the chosen labels, and opens the choice of others. */
function LabelFilter() {
  const { router, shownList } = useGallery()
  const { labels } = router.list.value
  const [open, setOpen] = useState(false)
  const opener = useRef<HTMLButtonElement>(null)
  return (
    <>
      <button
        ref={opener}
        type="button"
        class="button label-switch"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="tag" />
        {strings.filter.labels}
      </button>
      {open && (
        <fieldset class="label-menu" aria-label={strings.filter.labels}>
          <LabelChoices />
        </fieldset>
      )}
      {labels.length > 0 && (
        <ul class="chips" aria-label={strings.filter.chosenLabels}>
          {labels.map((label) => (
            <li key={label}>
              <span>{label}</span>
              <IconButton
                icon="close"
                label={strings.filter.removeLabel(label)}
                onClick={() => {
                  shownList.choose({ labels: labels.filter((other) => other !== label) })
                  // The button is removed.
                  opener.current?.focus()
                }}
              />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** The choice of labels, when its code is loaded. */
function LabelChoices() {
  const menu = useCode(() => import('./label-menu.tsx'))
  if (menu === 'loading') return <p role="status">{strings.viewer.loading}</p>
  return menu === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <menu.LabelMenu />
}
