' What `libreoffice.py` tells LibreOffice to do. It sends a byte when a file of commands is written, and
' gets back a line: what went wrong, or nothing. A command is a line, its fields apart by tabs.

Sub Main(port, commands)
  Dim heard() As Byte
  On Error GoTo gone
  connector = createUnoService("com.sun.star.connection.Connector")
  link = connector.connect("socket,host=127.0.0.1,port=" & port)
  Do While link.read(heard, 1) = 1
    link.write(Codes(Fault(commands) & Chr(10)))
  Loop
gone:
  StarDesktop.terminate()
End Sub

Function Codes(text)
  Dim found() As Byte
  ReDim found(Len(text) - 1) As Byte
  For k = 1 To Len(text)
    found(k - 1) = Asc(Mid(text, k, 1)) And 127
  Next
  Codes = found
End Function

Function Fault(commands)
  On Error GoTo wrong
  Dim cells(9999), before(9999), watched(99)
  Dim font As New com.sun.star.awt.FontDescriptor
  n = 0
  last = -1
  rows = ""
  files = createUnoService("com.sun.star.ucb.SimpleFileAccess")
  lines = createUnoService("com.sun.star.io.TextInputStream")
  lines.setInputStream(files.openFileRead(commands))
  lines.setEncoding("UTF-8")
  Do Until lines.isEOF()
    f = Split(lines.readLine(), Chr(9))
    Select Case f(0)
    Case "open"
      last = -1
      book = StarDesktop.loadComponentFromURL(f(1), "_blank", 0, Array(Property("Hidden", True)))
      If IsNull(book) Then
        Fault = "cannot open " & f(1)
        Exit Function
      End If
    Case "type"
      cells(n) = book.Sheets.getByName(f(1)).getCellByPosition(CLng(f(3)), CLng(f(2)))
      before(n) = Held(cells(n))
      If cells(n).CellProtection.IsLocked Then cells(n).Spreadsheet.unprotect("")
      Enter cells(n), f(4), Plain(f(5))
      n = n + 1
    Case "put back"
      Do While n > 0
        n = n - 1
        Enter cells(n), before(n)(0), before(n)(1)
      Loop
    Case "compute"
      book.calculateAll()
    Case "save"
      book.storeToURL(f(1), Array(Property("FilterName", f(2)), Property("FilterOptions", f(3))))
    Case "watch"  ' a cell, wherever it goes
      last = last + 1
      watched(last) = book.Sheets.getByName(f(1)).getCellByPosition(CLng(f(3)), CLng(f(2)))
    Case "tell"  ' what the watched cells show, and how many cells hold errors
      rows = rows & Told(watched, last, Errors(book)) & Chr(10)
    Case "show"  ' what the watched cells show; the others wait
      rows = rows & Told(watched, last, "") & Chr(10)
    Case "places"  ' where the charts of each visible sheet end, and then a cell: to the right, and below
      For Each sheet In book.Sheets
        If sheet.IsVisible Then rows = rows & Charts(sheet)
      Next
      sheet = book.Sheets.getByName(f(1))
      rows = rows & Ending(sheet.Name, sheet.getCellByPosition(CLng(f(3)), CLng(f(2))))
    Case "look"  ' where everything stands on each visible sheet
      For Each sheet In book.Sheets
        If sheet.IsVisible Then rows = rows & Seen(sheet)
      Next
    Case "measure"  ' how wide a text is in a font: its name, its size and its weight
      If IsEmpty(screen) Then screen = createUnoService("com.sun.star.awt.Toolkit").createScreenCompatibleDevice(1, 1)
      font.Name = f(1)
      font.Height = CInt(f(2))
      font.Weight = CDbl(f(3))
      rows = rows & screen.getFont(font).getStringWidth(Plain(f(4))) & Chr(10)
    Case "write"  ' what was told
      stream = createUnoService("com.sun.star.io.TextOutputStream")
      stream.setOutputStream(files.openFileWrite(f(1)))
      stream.setEncoding("UTF-8")
      stream.writeString(rows)
      stream.closeOutput()
    Case "undo"  ' everything
      Do While book.UndoManager.isUndoPossible()
        book.UndoManager.undo()
      Loop
    Case "unprotect"
      For Each sheet In book.Sheets
        sheet.unprotect("")
      Next
    Case "close"
      book.close(True)
    Case Else
      Act book, f
    End Select
  Loop
  lines.closeInput()
  Fault = ""
  Exit Function
wrong:
  Fault = "line " & Erl & ": " & Join(Split(Error, Chr(10)), " ")
End Function

Sub Act(book, f)  ' as somebody does it with a mouse: what a locked sheet refuses does not happen
  On Error Resume Next
  sheets = book.Sheets
  sheet = sheets.getByName(f(1))
  Select Case f(0)
  Case "enter"
    Enter sheet.getCellRangeByName(f(2)), f(3), f(4)
  Case "insert rows"
    sheet.Rows.insertByIndex(CLng(f(2)), CLng(f(3)))
  Case "delete rows"
    sheet.Rows.removeByIndex(CLng(f(2)), CLng(f(3)))
  Case "insert columns"
    sheet.Columns.insertByIndex(CLng(f(2)), CLng(f(3)))
  Case "delete columns"
    sheet.Columns.removeByIndex(CLng(f(2)), CLng(f(3)))
  Case "insert cells"  ' those there go down
    sheet.insertCells(sheet.getCellRangeByName(f(2)).RangeAddress, com.sun.star.sheet.CellInsertMode.DOWN)
  Case "delete sheet"
    sheets.removeByName(f(1))
  Case "rename sheet"
    sheet.Name = f(2)
  Case "copy sheet"
    sheets.copyByName(f(1), f(2), CLng(f(3)))
  Case "move sheet"
    sheets.moveByName(f(1), CLng(f(2)))
  Case "sort"
    Dim by(0) As New com.sun.star.table.TableSortField
    by(0).Field = CLng(f(3))
    by(0).IsAscending = f(4) = "up"
    sheet.getCellRangeByName(f(2)).sort(Array(Property("SortFields", by())))
  Case "copy"
    there = sheet.getCellRangeByName(f(3)).getCellByPosition(0, 0).CellAddress
    sheet.copyRange(there, sheet.getCellRangeByName(f(2)).RangeAddress)
  Case "cut"
    there = sheet.getCellRangeByName(f(3)).getCellByPosition(0, 0).CellAddress
    sheet.moveRange(there, sheet.getCellRangeByName(f(2)).RangeAddress)
  Case "fill down"
    sheet.getCellRangeByName(f(2)).fillAuto(com.sun.star.sheet.FillDirection.TO_BOTTOM, 1)
  Case "clear"
    sheet.getCellRangeByName(f(2)).clearContents(23)
  Case "filter"
    book.DatabaseRanges.addNewByName("filtered", sheet.getCellRangeByName(f(2)).RangeAddress)
    book.DatabaseRanges.getByName("filtered").AutoFilter = True
  End Select
End Sub

Function Charts(sheet)
  Charts = ""
  For k = 0 To sheet.DrawPage.Count - 1
    shape = sheet.DrawPage.getByIndex(k)
    If shape.supportsService("com.sun.star.drawing.OLE2Shape") Then Charts = Charts & Ending(sheet.Name, shape)
  Next
End Function

Function Seen(sheet)  ' its name, the sizes of its columns and rows, and its charts, in hundredths of a millimetre
  used = sheet.createCursor()
  used.gotoEndOfUsedArea(False)
  widths = ""
  For k = 0 To IIf(used.RangeAddress.EndColumn < 40, 40, used.RangeAddress.EndColumn)
    column = sheet.Columns.getByIndex(k)
    widths = widths & Chr(9) & IIf(column.IsVisible, column.Width, 0)
  Next
  heights = ""
  For k = 0 To IIf(used.RangeAddress.EndRow < 40, 40, used.RangeAddress.EndRow)
    row = sheet.Rows.getByIndex(k)
    heights = heights & Chr(9) & IIf(row.IsVisible, row.Height, 0)
  Next
  Seen = "sheet" & Chr(9) & sheet.Name & Chr(10) & "columns" & widths & Chr(10) & "rows" & heights & Chr(10)
  For k = 0 To sheet.DrawPage.Count - 1
    shape = sheet.DrawPage.getByIndex(k)
    If shape.supportsService("com.sun.star.drawing.OLE2Shape") Then
      Seen = Seen & Join(Array("chart", shape.Position.X, shape.Position.Y, shape.Size.Width, shape.Size.Height), Chr(9)) & Chr(10)
    End If
  Next
End Function

Function Ending(name, thing)  ' in hundredths of a millimetre
  Ending = Join(Array(name, thing.Position.X + thing.Size.Width, thing.Position.Y + thing.Size.Height), Chr(9)) & Chr(10)
End Function

Function Errors(book)
  n = 0
  For Each sheet In book.Sheets
    For Each area In sheet.queryFormulaCells(com.sun.star.sheet.FormulaResult.ERROR).RangeAddresses
      n = n + (area.EndRow - area.StartRow + 1) * (area.EndColumn - area.StartColumn + 1)
    Next
  Next
  Errors = n
End Function

Function Told(watched, last, n)
  line = CStr(n)
  For k = 0 To last
    line = line & Chr(9) & Shown(watched(k))
  Next
  Told = line
End Function

Function Shown(cell)
  On Error Resume Next
  Shown = "gone"
  Shown = Join(Split(cell.String, Chr(10)), " ")
End Function

Function Held(cell)  ' the kind of what a cell holds, and what it is
  Select Case cell.Type
  Case com.sun.star.table.CellContentType.VALUE
    Held = Array("number", cell.Value)
  Case com.sun.star.table.CellContentType.TEXT
    Held = Array("text", cell.String)
  Case com.sun.star.table.CellContentType.FORMULA
    Held = Array("formula", cell.Formula)
  Case Else
    Held = Array("nothing", "")
  End Select
End Function

Sub Enter(cell, kind, value)
  Select Case kind
  Case "number"
    If VarType(value) = V_STRING Then cell.Value = Val(value) Else cell.Value = value
  Case "text"
    cell.String = value
  Case "formula"
    cell.Formula = value
  Case "nothing"
    cell.clearContents(23)  ' numbers, dates, texts and formulas
  End Select
End Sub

Function Plain(field)  ' with what would end a field or a line of commands
  Plain = field
  For k = 9 To 13
    Plain = Join(Split(Plain, Chr(&HE000 + k)), Chr(k))
  Next
End Function

Function Property(name, value)
  Property = createUnoStruct("com.sun.star.beans.PropertyValue")
  Property.Name = name
  Property.Value = value
End Function
