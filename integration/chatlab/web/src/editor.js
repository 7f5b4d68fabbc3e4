import {baseKeymap, splitBlock} from 'prosemirror-commands'
import {history, redo, undo} from 'prosemirror-history'
import {keymap} from 'prosemirror-keymap'
import {Schema} from 'prosemirror-model'
import {EditorState, Plugin} from 'prosemirror-state'
import {Decoration, DecorationSet, EditorView} from 'prosemirror-view'

const schema = new Schema({
  nodes: {
    doc: {content: 'paragraph+'},
    paragraph: {content: 'inline*', group: 'block', parseDOM: [{tag: 'p'}], toDOM: () => ['p', 0]},
    text: {group: 'inline'},
    hard_break: {inline: true, group: 'inline', selectable: false, parseDOM: [{tag: 'br'}], toDOM: () => ['br']},
  },
})

function placeholder(text) {
  return new Plugin({
    props: {
      decorations({doc}) {
        if (doc.childCount > 1 || doc.firstChild.content.size > 0) return null
        const empty = Decoration.node(0, doc.firstChild.nodeSize, {class: 'placeholder', 'data-placeholder': text})
        return DecorationSet.create(doc, [empty])
      },
    },
  })
}

// autolink wraps URLs in links, as some chat composers do.
function autolink() {
  return new Plugin({
    props: {
      decorations({doc}) {
        const links = []
        doc.descendants((node, at) => {
          for (const found of node.text?.matchAll(/https?:\/\/\S+/g) ?? []) {
            const from = at + found.index
            links.push(Decoration.inline(from, from + found[0].length, {nodeName: 'a', href: found[0]}))
          }
        })
        return DecorationSet.create(doc, links)
      },
    },
  })
}

function fromText(text) {
  const paragraphs = text.split('\n').map((line) => schema.node('paragraph', null, line ? schema.text(line) : null))
  return schema.node('doc', null, paragraphs)
}

// Editor is the ProseMirror composer.
export class Editor {
  // options: hint, enter (send or newline), links, text; onSubmit() and onChange().
  constructor(place, options) {
    this.onChange = options.onChange
    const submit = () => (options.onSubmit(), true)
    const keys = options.enter === 'newline' ? {'Mod-Enter': submit, Enter: splitBlock} : {Enter: submit}
    this.plugins = [
      keymap({...keys, 'Shift-Enter': splitBlock, 'Mod-z': undo, 'Mod-Shift-z': redo}),
      keymap(baseKeymap),
      history(),
      placeholder(options.hint),
    ]
    if (options.links) this.plugins.push(autolink())
    this.view = new EditorView(place, {
      state: this.stateOf(options.text ?? ''),
      attributes: {id: 'prompt-textarea', translate: 'no', 'data-virtualkeyboard': 'true'},
      dispatchTransaction: (transaction) => {
        this.view.updateState(this.view.state.apply(transaction))
        if (transaction.docChanged) this.onChange()
      },
    })
  }

  stateOf(text) {
    return EditorState.create({doc: fromText(text), plugins: this.plugins})
  }

  text() {
    const lines = []
    this.view.state.doc.forEach((paragraph) => {
      lines.push(paragraph.textBetween(0, paragraph.content.size, '', () => '\n'))
    })
    return lines.join('\n')
  }

  setText(text) {
    this.view.updateState(this.stateOf(text))
    this.onChange()
  }

  // type adds text at the end, as a person would who types.
  type(text) {
    this.setText(this.text() + text)
  }

  destroy() {
    this.view.destroy()
  }
}
